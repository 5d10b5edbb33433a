"""A Plan on a Linux stack: what the engines share that lay its network out of namespaces, on whichever kernel."""
