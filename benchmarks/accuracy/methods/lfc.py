"""LFC without features (Raykar et al. 2010): Dawid-Skene with 1 added to every count."""

from ds_em import dawid_skene

PROBABILITIES = True


def aggregate(crowd):
    return dawid_skene(crowd, added=1.0)
