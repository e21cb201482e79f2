-- A lending library: who has which book, and what is overdue.

CREATE TABLE reader (
    reader_id  INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    joined_on  DATE NOT NULL
);

CREATE TABLE book (
    book_id    INTEGER PRIMARY KEY,
    isbn       TEXT NOT NULL UNIQUE,
    title      TEXT NOT NULL,
    language   TEXT NOT NULL DEFAULT 'und'
);

CREATE TABLE loan (
    loan_id      INTEGER PRIMARY KEY,
    book_id      INTEGER NOT NULL REFERENCES book,
    reader_id    INTEGER NOT NULL REFERENCES reader,
    lent_on      DATE NOT NULL,
    due_on       DATE NOT NULL,
    returned_on  DATE,
    CHECK (due_on >= lent_on),
    CHECK (returned_on IS NULL OR returned_on >= lent_on)
);

-- A book is lent to one reader at a time.
CREATE UNIQUE INDEX one_open_loan ON loan (book_id) WHERE returned_on IS NULL;

-- Readers with overdue books, the longest overdue first.
SELECT r.name,
       count(*)                        AS overdue,
       max(CURRENT_DATE - l.due_on)    AS longest_days,
       string_agg(b.title, ', ' ORDER BY l.due_on) AS titles
FROM loan AS l
JOIN reader AS r USING (reader_id)
JOIN book AS b USING (book_id)
WHERE l.returned_on IS NULL
  AND l.due_on < CURRENT_DATE
GROUP BY r.reader_id, r.name
ORDER BY longest_days DESC, r.name;

-- The share of loans returned on time, by month and language.
WITH finished AS (
    SELECT date_trunc('month', l.lent_on) AS month,
           b.language,
           l.returned_on <= l.due_on      AS on_time
    FROM loan AS l
    JOIN book AS b USING (book_id)
    WHERE l.returned_on IS NOT NULL
)
SELECT month,
       language,
       count(*)                                               AS loans,
       round(100.0 * count(*) FILTER (WHERE on_time) / count(*), 1) AS on_time_percent
FROM finished
GROUP BY month, language
HAVING count(*) >= 5
ORDER BY month, language;
