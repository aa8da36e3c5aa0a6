"""Estimators: what users fit."""
