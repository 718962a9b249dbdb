"""The terminal UI, installed as `minicache_tui`: watch blocks being allocated, hit, missed and evicted."""
