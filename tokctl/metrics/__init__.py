"""How candidates are judged: one encode pass, one file per family of metrics, gates.

``table`` lists the metrics; ``evaluate`` measures documents, ``resample`` draws the bootstrap, the families turn a
``Sample`` into rows, ``gates`` judges rows and ``compare`` runs it all.
"""
