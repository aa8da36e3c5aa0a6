"""Panels of judges, honest rates, agreement and shared errors: the public name is `tb.judges`."""

from tiebreak.juries import messages as messages
from tiebreak.juries.agreement import (
    AgreementReport,
    Alpha,
    CohenKappas,
    Copies,
    Counts,
    Spam,
    agreement_report,
    cohen_kappas,
    count_labels,
    find_spam,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from tiebreak.juries.dependence import Dependence, error_dependence
from tiebreak.juries.panel import (
    Judge,
    PanelReport,
    Sample,
    Versus,
    panel_report,
    sample_tasks,
    self_preferences,
    share_discount,
)
from tiebreak.juries.rates import METHODS, Difference, Rate, RateTable, estimate_rates

__all__ = [
    "METHODS",
    "AgreementReport",
    "Alpha",
    "CohenKappas",
    "Copies",
    "Counts",
    "Dependence",
    "Difference",
    "Judge",
    "PanelReport",
    "Rate",
    "RateTable",
    "Sample",
    "Spam",
    "Versus",
    "agreement_report",
    "cohen_kappas",
    "count_labels",
    "error_dependence",
    "estimate_rates",
    "find_spam",
    "fleiss_kappa",
    "krippendorff_alpha",
    "panel_report",
    "percent_agreement",
    "sample_tasks",
    "self_preferences",
    "share_discount",
]
