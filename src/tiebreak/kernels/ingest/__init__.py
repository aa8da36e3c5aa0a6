"""Intake: ids into codes, and responses into the order that sweeps need.

Small inputs are arranged by `reference` (plain NumPy) and coded by Arrow; large ones by compiled
loops, `sort_by_task` and `id_tables`. Both give the same codes, bit by bit.
"""
