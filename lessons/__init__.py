"""The course's labs, installed as `minicache_lessons`."""
