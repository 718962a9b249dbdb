"""What breaks a prefix in a real request log.

request_log   files to requests             bodies    a vendor's body in one form    values   values by their path
prompt        payload to text to tokens     earlier   what A left in the cache       site     one divergence of A and B
reuse         what the caches find          spans     where two texts differ         kinds    the kinds of loss
rules/        what can break a prefix, a file a family, in the order of `rules/table.py`
diff          find a cause, repair it, look again            reported  causes that only the log shows
examine       two requests in, one diff out
report        the diff as text and JSON     html      as a page                      shown    how texts are shown
"""
