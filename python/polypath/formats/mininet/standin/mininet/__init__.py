"""Stand-ins for the Mininet modules that topology classes use. They make no interfaces or processes.

A file that is imported sees them under Mininet's own names. Its interface is that of Mininet 2.3 (mininet/topo.py,
topolib.py, link.py, node.py, util.py). The modules whose names begin with an underscore are the import's own.
"""
