"""A Plan on a Linux stack: the common part of the engines that build its network from namespaces."""
