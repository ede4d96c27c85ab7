"""The local reader: fields from words and their places, chosen by a small learned ranker; no key and no network.

Every kind of document is read in the same three moves. `layout` says how the words of a page stand to each other. A
`Target` per field names everything on the page that could be its value (`candidates`), each with features. A `Ranker`
(`ranker`, `boosting`), fitted by `training` on labelled documents, gives each candidate and the answer "it is not
there" a probability. `receipts` and `invoices` hold what is particular to a kind; `models` holds the fitted rankers
that ship with the package. numpy is imported here, so nothing outside imports these modules before a document is to
be read.
"""
