"""Links that may be wrong: how often each source errs, and which links are suspect."""
