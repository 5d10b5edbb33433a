"""The real Linux stack: a User Mode Linux kernel that runs a Plan in virtual time."""
