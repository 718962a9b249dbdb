"""What breaks a prefix in a real request log.

request_log   files to requests          bodies        a vendor's body to one form      values     by path
figures       tokens and reuse           spans         where two texts part and meet    site       one divergence
kinds         the closed list            breakers      the table of rules               rules_*    their detectors
diff          peel, cause by cause       report …      what is printed
"""
