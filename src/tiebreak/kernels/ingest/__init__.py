"""Responses in the order that sweeps need.

Few are arranged by `reference` (plain NumPy), many by compiled loops, `sort_by_task`. Both give the
same codes, bit by bit.
"""
