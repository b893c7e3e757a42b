-- schemas: created, dropped, created again in one transaction
CREATE SCHEMA a;
CREATE SCHEMA IF NOT EXISTS a;
CREATE SCHEMA "Odd, ""name""";
CREATE TABLE "Odd, ""name"""."t.1" (i INTEGER);
DROP SCHEMA a;
BEGIN;
CREATE SCHEMA a;
CREATE TABLE a.t (i INTEGER);
COMMIT;
DROP SCHEMA a CASCADE;

-- tables: every simple type
CREATE TABLE t (b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INTEGER, i8 BIGINT, u1 UTINYINT, u2 USMALLINT, u4 UINTEGER, u8 UBIGINT);
CREATE TABLE f (f4 FLOAT, f8 DOUBLE, d4 DECIMAL(4,1), d18 DECIMAL(18,6), d38 DECIMAL(38,10), s VARCHAR, x BLOB, u UUID);
CREATE TABLE d (d DATE, t TIME, ts TIMESTAMP, tss TIMESTAMP_S, tsm TIMESTAMP_MS, tsn TIMESTAMP_NS, tz TIMESTAMPTZ);
INSERT INTO t VALUES (true, -128, -32768, -2147483648, -9223372036854775808, 255, 65535, 4294967295, 18446744073709551615);
INSERT INTO t VALUES (false, 127, 32767, 2147483647, 9223372036854775807, 0, 0, 0, 0), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO d VALUES (DATE '1992-01-01', TIME '12:34:56', TIMESTAMP '2020-01-01 00:00:00', TIMESTAMP '2020-01-01 00:00:01', TIMESTAMP '2020-01-01 00:00:01.5', TIMESTAMP '2020-01-01 00:00:01.25', TIMESTAMPTZ '2020-01-01 00:00:00+00');
INSERT INTO f VALUES (1.5, -2.5, 1.5, 2.25, 3.125, 'x', 'ab'::BLOB, '00000000-0000-0000-0000-000000000001');

-- tables: floating point extremes
CREATE TABLE f (i INTEGER, d DOUBLE);
INSERT INTO f VALUES (1, 'nan'), (2, 1.5);
INSERT INTO f VALUES (3, 'inf'), (4, '-inf');
INSERT INTO f VALUES (5, NULL);
INSERT INTO f VALUES (6, -0.0), (7, 1e308);

-- tables: names that need quotes
CREATE TABLE "select" ("from" INTEGER, "a b" VARCHAR, "üñí" INTEGER, "per%cent" INTEGER);
INSERT INTO "select" VALUES (1, 'x', 2, 3);
INSERT INTO "select" ("a b") VALUES ('it''s "quoted", 50% off');
UPDATE "select" SET "per%cent" = 4 WHERE "from" = 1;
ALTER TABLE "select" RENAME COLUMN "a b" TO "c d";
ALTER TABLE "select" RENAME TO "group";
INSERT INTO "group" VALUES (5, 'y', 6, 7);

-- tables: dropped and made again
CREATE TABLE t (i INTEGER);
INSERT INTO t VALUES (1);
DROP TABLE t;
CREATE TABLE t (s VARCHAR);
INSERT INTO t VALUES ('a');
CREATE OR REPLACE TABLE t (d DATE);
INSERT INTO t VALUES (DATE '2020-02-02');
DROP TABLE IF EXISTS t;
DROP TABLE IF EXISTS t;

-- tables: made and dropped in one transaction
CREATE TABLE kept (i INTEGER);
BEGIN;
CREATE TABLE t (i INTEGER);
INSERT INTO t VALUES (1), (2);
DROP TABLE t;
INSERT INTO kept VALUES (1);
COMMIT;

-- defaults: given, changed, dropped
CREATE TABLE t (i INTEGER DEFAULT 42, s VARCHAR DEFAULT 'it''s');
INSERT INTO t (i) VALUES (1);
ALTER TABLE t ALTER COLUMN i SET DEFAULT 43;
INSERT INTO t (s) VALUES ('x');
ALTER TABLE t ALTER COLUMN i DROP DEFAULT;
INSERT INTO t (s) VALUES ('y');

-- not null: given, taken away, set
CREATE TABLE t (i INTEGER NOT NULL, j INTEGER);
INSERT INTO t VALUES (1, 2);
ALTER TABLE t ALTER COLUMN i DROP NOT NULL;
INSERT INTO t VALUES (NULL, 3);
ALTER TABLE t ALTER COLUMN j SET NOT NULL;
INSERT INTO t VALUES (4, 5);

-- types: widened
CREATE TABLE t (i TINYINT, f FLOAT, n INTEGER);
INSERT INTO t VALUES (1, 1.5, 7);
ALTER TABLE t ALTER COLUMN i SET DATA TYPE INTEGER;
INSERT INTO t VALUES (100000, 2.5, 8);
ALTER TABLE t ALTER COLUMN f SET DATA TYPE DOUBLE;
ALTER TABLE t ALTER COLUMN n SET DATA TYPE BIGINT;
INSERT INTO t VALUES (-5, 1e200, 9000000000);

-- columns: added, dropped, the same name again
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 2);
ALTER TABLE t DROP COLUMN b;
ALTER TABLE t ADD COLUMN b VARCHAR DEFAULT 'new';
INSERT INTO t VALUES (3, 'x');
ALTER TABLE t RENAME COLUMN a TO c;
ALTER TABLE t ADD COLUMN a DATE;
INSERT INTO t VALUES (4, 'y', DATE '2021-01-01');

-- columns: several changes in one transaction
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 2);
BEGIN;
ALTER TABLE t ADD COLUMN c INTEGER;
ALTER TABLE t RENAME COLUMN a TO z;
INSERT INTO t VALUES (3, 4, 5);
COMMIT;
SELECT * FROM t;

-- nested: lists, structs and maps
CREATE TABLE t (l INTEGER[], s STRUCT(a INTEGER, b STRUCT(c VARCHAR, d DATE)), m MAP(VARCHAR, INTEGER[]));
INSERT INTO t VALUES ([1, NULL, 3], {'a': 1, 'b': {'c': 'x', 'd': DATE '2020-01-01'}}, MAP {'k': [1, 2]});
INSERT INTO t VALUES ([], {'a': NULL, 'b': NULL}, MAP {'z': []}), (NULL, NULL, NULL);
DELETE FROM t WHERE l IS NULL;

-- rows: kept in the catalog, changed again and again
CREATE TABLE t (i INTEGER, s VARCHAR);
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');
UPDATE t SET s = upper(s);
UPDATE t SET i = i + 1 WHERE i > 2;
DELETE FROM t WHERE i = 1;
INSERT INTO t VALUES (9, NULL);
UPDATE t SET s = NULL WHERE i = 2;
DELETE FROM t;
INSERT INTO t VALUES (10, 'j');

-- rows: ten are kept in the catalog, eleven in a file
CREATE TABLE t (i INTEGER);
INSERT INTO t SELECT * FROM range(10);
INSERT INTO t SELECT * FROM range(10, 21);
INSERT INTO t VALUES (100);

-- spark, rows: deleted from files, a few and many
CREATE TABLE t (i INTEGER, s VARCHAR);
INSERT INTO t SELECT range, 'r' || range FROM range(100);
DELETE FROM t WHERE i = 5;
DELETE FROM t WHERE i IN (6, 7);
DELETE FROM t WHERE i BETWEEN 20 AND 60;
DELETE FROM t WHERE i = 99;

-- spark, rows: updated in files
CREATE TABLE t (i INTEGER, s VARCHAR);
INSERT INTO t SELECT range, 'r' || range FROM range(50);
UPDATE t SET s = 'changed' WHERE i = 3;
UPDATE t SET s = upper(s) WHERE i >= 30;
DELETE FROM t WHERE i = 3;

-- spark, rows: a file emptied
CREATE TABLE t (i INTEGER);
INSERT INTO t SELECT * FROM range(50);
INSERT INTO t VALUES (1000);
DELETE FROM t WHERE i < 500;
DELETE FROM t;

-- rows: truncated
CREATE TABLE t (i INTEGER);
INSERT INTO t SELECT * FROM range(20);
INSERT INTO t VALUES (1), (2);
TRUNCATE t;
INSERT INTO t VALUES (3);

-- rows: nothing matches
CREATE TABLE t (i INTEGER);
DELETE FROM t;
INSERT INTO t VALUES (1);
DELETE FROM t WHERE i = 2;
UPDATE t SET i = 3 WHERE i = 2;
INSERT INTO t SELECT * FROM t WHERE i = 2;

-- rows: from another table, and from itself
CREATE TABLE a (i INTEGER, s VARCHAR);
INSERT INTO a VALUES (1, 'x'), (2, 'y');
CREATE TABLE b AS SELECT i, s FROM a;
INSERT INTO b SELECT i + 10, s FROM a;
INSERT INTO a SELECT * FROM a;

-- rows: columns left out and in another order
CREATE TABLE t (a INTEGER, b VARCHAR DEFAULT 'dflt', c DOUBLE);
INSERT INTO t (c, a) VALUES (1.5, 1);
INSERT INTO t (b) VALUES ('x');
INSERT INTO t BY NAME SELECT 2 AS c, 3 AS a;
INSERT INTO t VALUES (DEFAULT, DEFAULT, 4);

-- transactions: two tables and a schema
BEGIN;
CREATE SCHEMA s;
CREATE TABLE s.b (i INTEGER);
CREATE TABLE s.a (i INTEGER);
INSERT INTO s.b VALUES (1);
INSERT INTO s.a SELECT i + 1 FROM s.b;
COMMIT;
BEGIN;
DELETE FROM s.b;
INSERT INTO s.a VALUES (7);
COMMIT;

-- transactions: rolled back
CREATE TABLE t (i INTEGER);
BEGIN;
INSERT INTO t VALUES (1);
CREATE TABLE u (i INTEGER);
ROLLBACK;
INSERT INTO t VALUES (2);

-- transactions: with a message
CREATE TABLE t (i INTEGER);
BEGIN;
INSERT INTO t VALUES (1);
CALL lake.set_commit_message('me', 'first row', extra_info => '{"k": 1}');
COMMIT;
INSERT INTO t VALUES (2);

-- transactions: without a change
CREATE TABLE t (i INTEGER);
BEGIN;
SELECT * FROM t;
COMMIT;
BEGIN;
INSERT INTO t SELECT 1 WHERE false;
COMMIT;
INSERT INTO t VALUES (1);

-- views: made, replaced, renamed, dropped
CREATE TABLE t (i INTEGER);
CREATE VIEW v AS SELECT i FROM t;
CREATE OR REPLACE VIEW v AS SELECT i + 1 AS j FROM t;
ALTER VIEW v RENAME TO w;
DROP VIEW w;

-- partitions: rows of few and many partitions
CREATE TABLE t (p INTEGER, d DATE, v VARCHAR);
ALTER TABLE t SET PARTITIONED BY (p);
INSERT INTO t SELECT range % 3, DATE '2020-01-01' + INTERVAL (range) DAY, 'v' || range FROM range(30);
INSERT INTO t VALUES (1, DATE '2021-01-01', 'inlined');
ALTER TABLE t SET PARTITIONED BY (year(d), month(d));
INSERT INTO t SELECT 7, DATE '2020-01-15' + INTERVAL (range) MONTH, 'w' || range FROM range(14);
ALTER TABLE t RESET PARTITIONED BY;
INSERT INTO t SELECT 8, NULL, 'x' FROM range(12);

-- spark, statistics: bounds that grow, and NULL alone
CREATE TABLE t (i INTEGER, s VARCHAR, d DATE);
INSERT INTO t VALUES (5, 'm', DATE '2020-06-01');
INSERT INTO t VALUES (-5, 'a', NULL);
INSERT INTO t VALUES (NULL, 'zz', DATE '1999-01-01');
INSERT INTO t SELECT range, NULL, NULL FROM range(50);
DELETE FROM t WHERE i = 49;
INSERT INTO t VALUES (NULL, NULL, NULL);

-- inlining: off for a table, on again
CREATE TABLE t (i INTEGER);
INSERT INTO t VALUES (1);
CALL lake.set_option('data_inlining_row_limit', 0, table_name => 't');
INSERT INTO t VALUES (2);
CALL lake.set_option('data_inlining_row_limit', 10, table_name => 't');
INSERT INTO t VALUES (3);

-- inlining: switched on after the table was made
CALL lake.set_option('data_inlining_row_limit', 0);
CREATE TABLE t (i INTEGER);
CREATE TABLE u (i INTEGER);
CALL lake.set_option('data_inlining_row_limit', 5);
INSERT INTO t VALUES (1);
INSERT INTO u VALUES (1);
INSERT INTO t VALUES (2);
CREATE TABLE v (i INTEGER);

-- options: of lake, schema and table
CREATE SCHEMA s;
CREATE TABLE s.t (i INTEGER);
CALL lake.set_option('parquet_compression', 'zstd');
CALL lake.set_option('parquet_compression', 'snappy', schema => 's');
CALL lake.set_option('target_file_size', '10MB', schema => 's', table_name => 't');
CALL lake.set_option('parquet_compression', 'gzip');

-- flush after an insert in one transaction
CREATE TABLE before (i INTEGER);
INSERT INTO before VALUES (1), (2);
BEGIN;
CREATE SCHEMA s1;
CREATE TABLE s1.tbl (i INTEGER);
INSERT INTO s1.tbl VALUES (42);
CALL ducklake_flush_inlined_data('lake');
COMMIT;
ALTER TABLE s1.tbl SET PARTITIONED BY (i);

-- flush into files of the size that they aim at
CALL lake.set_option('data_inlining_row_limit', 10000);
CALL lake.set_option('parquet_row_group_size', 2048);
CREATE TABLE t AS SELECT i, 'text ' || i AS s FROM range(5000) AS r(i);
DELETE FROM t WHERE i BETWEEN 100 AND 200;
DELETE FROM t WHERE i = 4999;
DELETE FROM t WHERE i % 2 = 0;
CALL lake.set_option('target_file_size', '1K');
CALL ducklake_flush_inlined_data('lake');

-- transactions: new tables altered in each way
BEGIN;
CREATE TABLE a0 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a0 ADD COLUMN st.z INTEGER;
COMMIT;
BEGIN;
CREATE TABLE a1 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a1 RENAME COLUMN st.a TO b;
COMMIT;
BEGIN;
CREATE TABLE a2 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a2 DROP COLUMN st.c;
COMMIT;
BEGIN;
CREATE TABLE a3 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a3 ALTER i TYPE BIGINT;
COMMIT;
BEGIN;
CREATE TABLE a4 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a4 DROP COLUMN i;
COMMIT;
BEGIN;
CREATE TABLE a5 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a5 RENAME COLUMN i TO j;
COMMIT;
BEGIN;
CREATE TABLE a6 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a6 ALTER i SET DEFAULT 3;
COMMIT;
BEGIN;
CREATE TABLE a7 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a7 ADD COLUMN q INTEGER;
COMMIT;
BEGIN;
CREATE TABLE a8 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a8 SET PARTITIONED BY (i);
COMMIT;
BEGIN;
CREATE TABLE a9 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a9 SET SORTED BY (i);
COMMIT;
BEGIN;
CREATE TABLE a10 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
COMMENT ON TABLE a10 IS 'x';
COMMIT;
BEGIN;
CREATE TABLE a11 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
COMMENT ON COLUMN a11.i IS 'x';
COMMIT;
BEGIN;
CREATE TABLE a12 (i INTEGER, st STRUCT(a INTEGER, c INTEGER));
ALTER TABLE a12 RENAME TO a12_r;
COMMIT;

-- transactions: tables, views, macros and schemas at once
BEGIN;
CREATE TABLE m (i INTEGER);
CREATE TABLE c (i INTEGER);
CREATE VIEW v AS SELECT i FROM m;
CREATE TABLE late (i INTEGER);
CREATE SCHEMA s2;
CREATE TABLE s2.x1 (i INTEGER);
CREATE TABLE s2.x2 (i INTEGER);
CREATE SCHEMA s3;
CREATE TABLE s3.y1 (i INTEGER);
CREATE MACRO m1(a) AS a;
CREATE MACRO m2(a) AS a + 1;
INSERT INTO c VALUES (1);
INSERT INTO m VALUES (2), (3);
COMMIT;
BEGIN;
ALTER TABLE m RENAME TO n;
ALTER TABLE n RENAME TO o;
COMMENT ON VIEW v IS 'it';
COMMIT;

-- rows from queries in parentheses, and names for the columns of a new table
CREATE TABLE q1 (a INTEGER, b VARCHAR);
INSERT INTO q1 (VALUES (1, 'x'), (2, 'y'));
INSERT INTO q1 (FROM q1);
INSERT INTO q1 (b) (VALUES ('z'));
CREATE TABLE q2(n, "select") AS SELECT a, b FROM q1 ORDER BY a, b;
CREATE TABLE q3(n) AS VALUES (1, 2), (3, 4);
CREATE TABLE q4(n) AS WITH w AS (SELECT 5) FROM w;
