"""Panels of judges, honest rates, agreement and shared errors: the public name is `tb.judges`."""

from tiebreak.judges import messages as messages
from tiebreak.judges.agreement import (
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
from tiebreak.judges.dependence import Dependence, error_dependence
from tiebreak.judges.panel import (
    Judge,
    PanelReport,
    Sample,
    Versus,
    panel_report,
    sample_tasks,
    self_preferences,
    share_discount,
)
from tiebreak.judges.rates import METHODS, Difference, Rate, RateTable, estimate_rates
from tiebreak.judges.spans import SpanAgreement, SpansOfWorker, span_agreement

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
    "SpanAgreement",
    "SpansOfWorker",
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
    "span_agreement",
]
