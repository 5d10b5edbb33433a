"""A plan as plain data, the only input of every engine: its tables as types, and what is asked of them.

Ids are places in the lists, times are in ns from the start of the run, rates in bit/s and sizes in bytes.
"""
