"""`tiny`: a model of about a million parameters that knows one subject, prefix caching.

    corpus/          the text it learns from, written for this purpose; not part of the installed package
    corpus.py        draws training documents from it
    decoder.py       the model as it is trained
    train.py         `python -m minicache.engine.tiny.train` trains it and writes
    folder.py        its folder: config, weights, tokenizer, chat template
    model/           the folder itself, 2 MB

One byte is one token, so that every example can be counted by hand. Importing this package imports no torch.
"""
