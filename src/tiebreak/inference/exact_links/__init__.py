"""Exact links: linked tasks are inferred jointly, component by component."""
