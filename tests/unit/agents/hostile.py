"""Requests as an attacker writes them; `{canary}` is a file outside of the lake, `{marker}` one that must not appear."""

from __future__ import annotations

#: Files, variables, settings and other databases, by whatever can stand for a query.
READS = tuple(
    line.strip()
    for line in """
    SELECT * FROM '{canary}'
    FROM '{canary}'
    FROM "{canary}"
    TABLE "{canary}"
    SELECT * FROM "{canary}" AS t
    SELECT * FROM ('{canary}')
    SELECT * FROM main."{canary}"
    SELECT * FROM lake."{canary}"
    SELECT * FROM lake.main."{canary}"
    SELECT * FROM memory.main."{canary}"
    SELECT * FROM orders, '{canary}'
    SELECT * FROM orders JOIN '{canary}' ON true
    SELECT * FROM orders POSITIONAL JOIN '{canary}'
    SELECT * FROM orders, LATERAL (SELECT * FROM '{canary}')
    SELECT * FROM orders WHERE id IN (SELECT a FROM '{canary}')
    SELECT (FROM '{canary}')
    SELECT (SELECT a FROM '{canary}' LIMIT 1) FROM orders
    SELECT * FROM orders WHERE EXISTS (FROM '{canary}')
    SELECT CASE WHEN true THEN (SELECT a FROM '{canary}') END
    SELECT [x FOR x IN (SELECT list(a) FROM '{canary}')]
    SELECT list_transform([1], lambda x: (SELECT a FROM '{canary}'))
    SELECT list_transform([1], x -> (SELECT a FROM '{canary}'))
    SELECT array(FROM '{canary}')
    SELECT * FROM orders ORDER BY (SELECT a FROM '{canary}')
    SELECT * FROM orders LIMIT (SELECT count(*) FROM '{canary}')
    SELECT count(*) OVER (PARTITION BY (SELECT a FROM '{canary}')) FROM orders
    SELECT count(*) FILTER (WHERE (SELECT a FROM '{canary}') = 'x') FROM orders
    SELECT id FROM orders GROUP BY id HAVING (SELECT a FROM '{canary}') = 'x'
    SELECT id FROM orders QUALIFY (SELECT a FROM '{canary}') = 'x'
    SELECT * FROM orders UNION ALL FROM '{canary}'
    SELECT * FROM orders EXCEPT (FROM '{canary}')
    WITH a AS (FROM '{canary}') SELECT * FROM a
    WITH "{canary}" AS (SELECT * FROM "{canary}") SELECT * FROM "{canary}"
    SELECT * FROM (WITH x AS (SELECT 1) FROM x), x
    WITH x AS (SELECT * FROM x) SELECT * FROM x
    WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT * FROM y), y AS (SELECT 2) SELECT * FROM x
    WITH a AS MATERIALIZED (SELECT * FROM read_text('{canary}')) FROM a
    WITH orders AS (FROM '{canary}') SELECT * FROM orders
    WITH read_text AS (SELECT 1) SELECT * FROM read_text('{canary}')
    SELECT * FROM orders AT (VERSION => (SELECT a FROM '{canary}'))
    SELECT * FROM read_text('{canary}')
    SELECT * FROM READ_TEXT('{canary}')
    SELECT * FROM "read_text"('{canary}')
    SELECT * FROM read_text ('{canary}')
    SELECT * FROM read_text/**/('{canary}')
    SELECT * FROM system.main.read_text('{canary}')
    SELECT * FROM main.read_text('{canary}')
    SELECT * FROM orders.read_csv('{canary}')
    SELECT * FROM lake.read_csv('{canary}')
    SELECT * FROM read_csv('{canary}')
    SELECT * FROM read_csv_auto('{canary}')
    SELECT * FROM read_blob('{canary}')
    SELECT * FROM read_json('{canary}')
    SELECT * FROM read_ndjson_objects('{canary}')
    SELECT * FROM read_parquet('{canary}')
    SELECT * FROM parquet_scan('{canary}')
    SELECT * FROM parquet_metadata('{canary}')
    SELECT * FROM sniff_csv('{canary}')
    SELECT * FROM glob('/etc/*')
    SELECT * FROM read_duckdb('{canary}')
    SELECT * FROM seq_scan('{canary}')
    SELECT * FROM query('FROM ''{canary}''')
    SELECT * FROM query_table('{canary}')
    SELECT * FROM query_table(['orders', '{canary}'])
    SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM ''{canary}'''))
    SELECT * FROM range(3), read_text('{canary}')
    SELECT * FROM range((SELECT count(*) FROM '{canary}'))
    SELECT * FROM unnest((SELECT list(a) FROM '{canary}'))
    SELECT * FROM repeat_row((SELECT a FROM '{canary}'), num_rows => 3)
    SELECT * FROM ROWS FROM (read_text('{canary}'))
    SELECT * FROM lake.table_changes('{canary}', 0, 9)
    SELECT * FROM lake.table_changes((SELECT a FROM '{canary}'), 0, 9)
    SELECT * FROM ducklake_table_changes('other', 'main', 'orders', 0, 9)
    SELECT * FROM lake.blame('orders', where => '(SELECT a FROM read_text(''{canary}''))')
    SELECT * FROM lake.expire_snapshots(older_than => now())
    SELECT * FROM lake.cleanup_old_files(cleanup_all => true)
    SELECT * FROM ducklake_cleanup_old_files('lake', cleanup_all => true)
    SELECT * FROM ducklake_add_data_files('lake', 'orders', '{canary}')
    SELECT * FROM ducklake_merge_adjacent_files('lake')
    SELECT * FROM lake.restore('orders', 1)
    SELECT * FROM lake.set_option('parquet_compression', 'none')
    SELECT * FROM lake.set_commit_message('root', 'x')
    SELECT * FROM pragma_table_info('orders')
    SELECT * FROM duckdb_secrets()
    SELECT * FROM duckdb_settings()
    SELECT * FROM duckdb_databases()
    SELECT * FROM duckdb_variables()
    SELECT * FROM which_secret('s3://x', 's3')
    SELECT * FROM duckdb_logs()
    SELECT * FROM python_map_function()
    SELECT * FROM arrow_scan(1, 2, 3)
    SELECT * FROM pandas_scan(1)
    SELECT * FROM information_schema.tables
    SELECT * FROM pg_catalog.pg_class
    SELECT * FROM sqlite_master
    SELECT * FROM duckdb_tables
    SELECT * FROM __ducklake_metadata_lake.main.ducklake_metadata
    SELECT * FROM __ducklake_metadata_lake.ducklake_snapshot
    SELECT * FROM ducklake_metadata
    SELECT * FROM session
    SELECT * FROM secret_frame
    SELECT * FROM lake.secret_frame
    SELECT getenv('HOME')
    SELECT getenv ('HOME')
    SELECT "getenv"('HOME')
    SELECT system.main.getenv('HOME')
    SELECT 'HOME'.getenv()
    SELECT ('HOME').getenv()
    SELECT name.getenv() FROM orders
    SELECT list_transform(['HOME'], lambda x: getenv(x))
    SELECT getvariable('x')
    SELECT current_setting('home_directory')
    SELECT current_query()
    SELECT nextval('s')
    SELECT setseed(0.5)
    SELECT error('x')
    SELECT write_log('x')
    SELECT sleep_ms(100000)
    SELECT pg_sleep(100)
    SELECT json_serialize_plan('SELECT 1')
    SELECT http_get('http://127.0.0.1/')
    SELECT COLUMNS(c -> getenv(c) = '') FROM orders
    SELECT * REPLACE ((SELECT content FROM read_text('{canary}')) AS id) FROM orders
    SELECT CAST(1 AS foo(getenv('HOME')))
    SELECT 1::DECIMAL((SELECT 1 FROM '{canary}'))
    SELECT * FROM orders WHERE id BETWEEN 1 AND (SELECT a FROM '{canary}')
    SELECT id COLLATE nocase FROM '{canary}'
    SELECT count(*) OVER w FROM orders WINDOW w AS (ORDER BY getenv('HOME'))
    SELECT DISTINCT ON (getenv('HOME')) * FROM orders
    SELECT string_agg(name ORDER BY getenv('HOME')) FROM orders
    SELECT id FROM orders GROUP BY GROUPING SETS ((getenv('HOME')))
    SELECT * FROM orders TABLESAMPLE (getenv('HOME'))
    SELECT lag(getenv('HOME'), 1, getenv('X')) OVER () FROM orders
    SELECT * REPLACE (getenv('HOME') AS id) FROM orders
    SELECT $1
    SELECT $x
    SELECT ?
    SELECT $$a$$
    SELECT * FROM $${canary}$$
    SELECT * FROM e'{canary}'
    SELECT * FROM E'\\x2fetc\\x2fpasswd'
    SELECT * FROM U&'{canary}'
    SELECT * FROM U&"{canary}"
    SELECT * FROM `{canary}`
    SELECT 1; SELECT * FROM '{canary}'
    SELECT 1;; SELECT 2
    SELECT 1 /* ; */; COPY orders TO '{marker}'
    SELECT 1 /* /* */ FROM orders; */ FROM '{canary}'
    SELECT 1 /* /* */ */ FROM '{canary}'
    SELECT 1 -- \\n FROM '{canary}'
    SELECT '\\'' FROM '{canary}' --'
    SELECT {{{{ FROM }}}} FROM '{canary}'
    SELECT {{% raw %}} 1
    SELECT 1 # FROM orders
    SELECT\u00a0*\u00a0FROM\u00a0'{canary}'
    SELECT 1\u200b FROM orders
    SELECT 1 FROM orders\x00; DROP TABLE orders
    ＳＥＬＥＣＴ * FROM '{canary}'
    SELECT * FROM ＇{canary}＇
    DESCRIBE '{canary}'
    DESCRIBE "{canary}"
    DESCRIBE SELECT * FROM '{canary}'
    DESCRIBE FROM read_csv('{canary}')
    SUMMARIZE '{canary}'
    SUMMARIZE FROM '{canary}'
    SUMMARIZE SELECT * FROM read_text('{canary}')
    SHOW '{canary}'
    SHOW DATABASES
    SHOW ALL TABLES
    SHOW TABLES FROM system
    SHOW memory_limit
    SELECT * FROM (DESCRIBE '{canary}')
    SELECT * FROM (SUMMARIZE '{canary}')
    SELECT * FROM (SHOW DATABASES)
    SELECT * FROM (SHOW ALL TABLES)
    PIVOT '{canary}' ON a
    PIVOT orders ON name USING first(getenv('HOME'))
    PIVOT orders ON name IN (SELECT a FROM '{canary}')
    FROM '{canary}' PIVOT (count(*) FOR a IN ('x'))
    UNPIVOT '{canary}' ON a INTO NAME n VALUE v
    SELECT * FROM (UNPIVOT (FROM '{canary}') ON COLUMNS(*))
    EXPLAIN SELECT * FROM '{canary}'
    EXPLAIN ANALYZE DELETE FROM orders
    EXPLAIN ANALYZE COPY orders TO '{marker}'
    SELECT CAST((SELECT a FROM '{canary}') AS VARCHAR)
    SELECT (SELECT a FROM '{canary}')::VARCHAR
    VALUES ((SELECT a FROM '{canary}'))
    VALUES (getenv('HOME'))
    FROM (VALUES ((SELECT content FROM read_text('{canary}'))))
    SELECT {{'a': (SELECT a FROM '{canary}')}}
    SELECT MAP {{1: (SELECT a FROM '{canary}')}}
    SELECT * FROM leaky_view
    SELECT * FROM outer_view
    SELECT * FROM lake.main.leaky_view
    SELECT count(*) FROM nested.deep_view
    SELECT leaky_macro(1)
    SELECT lake.main.leaky_macro(1)
    SELECT upper('x') FROM orders
    SELECT * FROM leaky_rows('x')
    SELECT * FROM lake.leaky_rows('x')
    SELECT * FROM loop_view
    DESCRIBE leaky_view
    SUMMARIZE leaky_view
    SELECT * FROM "/etc/passwd"
    SELECT * FROM '/etc/passwd'
    SELECT * FROM orders USING SAMPLE reservoir((SELECT 1) ROWS)
    SELECT * FROM spark.orders
    SELECT * FROM fine AT (VERSION => 2)
    SELECT * FROM fine AT (VERSION => 3)
    SELECT * FROM orders AT (TIMESTAMP => now())
    SELECT * FROM orders AT (VERSION => getenv('X'))
    SELECT * FROM lake.snapshots('x')
    SELECT * FROM orders VERSION AS OF 1
    SELECT * FROM orders TIMESTAMP AS OF '2020-01-01'
    WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d
    """.strip().splitlines()
    if line.strip()
)

#: Statements that reach out of the lake, or do what a branch does not need.
CHANGES = tuple(
    line.strip()
    for line in """
    ATTACH '{marker}' AS other
    ATTACH 'ducklake:{marker}' AS other
    ATTACH IF NOT EXISTS '{canary}' AS c (TYPE sqlite)
    DETACH lake
    USE memory
    USE lake.main
    COPY orders TO '{marker}'
    COPY (SELECT 1) TO '{marker}' (FORMAT parquet)
    COPY orders FROM '{canary}'
    COPY FROM DATABASE lake TO memory
    EXPORT DATABASE '{marker}'
    IMPORT DATABASE '{marker}'
    INSTALL httpfs
    FORCE INSTALL spatial
    LOAD httpfs
    LOAD '{canary}'
    SET enable_external_access = true
    SET GLOBAL s3_endpoint = 'x'
    SET VARIABLE x = (SELECT content FROM read_text('{canary}'))
    RESET ALL
    PRAGMA database_list
    PRAGMA enable_profiling
    PRAGMA profiling_output = '{marker}'
    CALL lake.expire_snapshots()
    CALL lake.cleanup_old_files(cleanup_all => true)
    CALL ducklake_add_data_files('lake', 'orders', '{canary}')
    CALL lake.set_commit_message('admin', 'x')
    CALL enable_logging(storage => 'file', storage_path => '{marker}')
    CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')
    CREATE PERSISTENT SECRET s (TYPE s3)
    DROP SECRET s
    PREPARE p AS SELECT * FROM '{canary}'
    EXECUTE p
    DEALLOCATE p
    BEGIN
    BEGIN TRANSACTION
    COMMIT
    ROLLBACK
    CHECKPOINT
    CHECKPOINT lake
    FORCE CHECKPOINT
    VACUUM
    ANALYZE
    CREATE MACRO m(x) AS getenv(x)
    CREATE OR REPLACE MACRO upper(x) AS getenv(x)
    CREATE FUNCTION m() AS TABLE FROM read_text('{canary}')
    DROP MACRO leaky_macro
    CREATE TEMP TABLE t AS SELECT 1
    CREATE TEMPORARY VIEW v AS FROM '{canary}'
    CREATE TABLE memory.main.t (a INTEGER)
    CREATE TABLE other.t (a INTEGER)
    CREATE TABLE temp.t AS SELECT 1
    CREATE TABLE "../../escape" (a INTEGER)
    CREATE TABLE "{marker}" (a INTEGER)
    CREATE TABLE t AS FROM '{canary}'
    CREATE TABLE t AS SELECT * FROM read_text('{canary}')
    CREATE TABLE t AS (SELECT getenv('HOME') AS h)
    CREATE OR REPLACE TABLE orders AS FROM "{canary}"
    CREATE TABLE t (a VARCHAR DEFAULT getenv('HOME'))
    CREATE TABLE t (a VARCHAR DEFAULT (SELECT content FROM read_text('{canary}')))
    CREATE TABLE t (a INTEGER, b VARCHAR AS (getenv('HOME')))
    CREATE TABLE t (a INTEGER, b VARCHAR GENERATED ALWAYS AS (getenv('HOME')) VIRTUAL)
    CREATE TABLE t (a INTEGER CHECK (a IN (FROM '{canary}')))
    CREATE TABLE t (a INTEGER, CHECK ((SELECT true FROM '{canary}')))
    CREATE TABLE t (a INTEGER PRIMARY KEY)
    CREATE TABLE t (a INTEGER REFERENCES orders (id))
    CREATE TABLE t (a INTEGER) WITH (location = '{marker}')
    CREATE TABLE t (a INTEGER) PARTITIONED BY (a)
    CREATE TABLE t (LIKE '{canary}')
    CREATE VIEW v AS FROM '{canary}'
    CREATE VIEW v AS SELECT * FROM read_csv('{canary}')
    CREATE VIEW v AS SELECT getenv('HOME')
    CREATE VIEW memory.main.v AS SELECT 1
    CREATE OR REPLACE VIEW v (a) AS SELECT a FROM "{canary}"
    CREATE SCHEMA memory.s
    CREATE SCHEMA "../s"
    CREATE SEQUENCE s
    CREATE INDEX i ON orders (id)
    CREATE TYPE t AS ENUM (SELECT a FROM '{canary}')
    CREATE DATABASE x
    CREATE TRIGGER t AFTER INSERT ON orders EXECUTE x
    DROP DATABASE lake
    DROP SCHEMA memory.main
    DROP TABLE memory.main.t
    DROP TABLE other.orders
    DROP TABLE orders, nothing
    DROP TABLE __ducklake_metadata_lake.ducklake_snapshot
    ALTER TABLE orders SET (data_path = '{marker}')
    ALTER TABLE orders RESET (data_path)
    ALTER TABLE orders SET PARTITIONED BY (id)
    ALTER TABLE orders SET SORTED BY (getenv('HOME'))
    ALTER TABLE orders ADD COLUMN h VARCHAR DEFAULT getenv('HOME')
    ALTER TABLE orders ALTER name SET DEFAULT getenv('HOME')
    ALTER TABLE orders ALTER name TYPE VARCHAR USING getenv(name)
    ALTER TABLE orders ALTER COLUMN name SET DATA TYPE VARCHAR USING (SELECT content FROM read_text('{canary}'))
    ALTER TABLE orders RENAME TO "../../x"
    ALTER DATABASE lake RENAME TO x
    ALTER VIEW leaky_view RENAME TO v
    INSERT INTO orders SELECT 1, content FROM read_text('{canary}')
    INSERT INTO orders FROM '{canary}'
    INSERT INTO orders FROM "{canary}"
    INSERT INTO orders (id, name) SELECT 1, getenv('HOME')
    INSERT INTO orders VALUES (1, getenv('HOME'))
    INSERT INTO orders VALUES (1, (SELECT content FROM read_text('{canary}')))
    INSERT INTO orders VALUES (1, 'a') RETURNING getenv('HOME')
    INSERT INTO orders VALUES (1, 'a'); COPY orders TO '{marker}'
    INSERT INTO orders VALUES (1, 'a') ON CONFLICT DO UPDATE SET name = getenv('HOME')
    INSERT OR REPLACE INTO orders VALUES (1, 'a')
    INSERT INTO orders WITH x AS (FROM '{canary}') FROM x
    INSERT INTO orders SELECT * FROM leaky_view
    INSERT INTO orders SELECT 1, leaky_macro(1)
    INSERT INTO leaky_view VALUES (1)
    INSERT INTO memory.main.t VALUES (1)
    INSERT INTO __ducklake_metadata_lake.ducklake_metadata VALUES ('data_path', '/', NULL, NULL)
    INSERT INTO defaulted (a) VALUES (1)
    WITH x AS (FROM '{canary}') INSERT INTO orders FROM x
    UPDATE orders SET name = getenv('HOME')
    UPDATE orders SET name = (SELECT content FROM read_text('{canary}'))
    UPDATE orders SET name = c.content FROM read_text('{canary}') c
    UPDATE orders SET name = 'x' FROM '{canary}' WHERE true
    UPDATE orders SET name = 'x' WHERE id IN (FROM '{canary}')
    UPDATE orders SET name = 'x' RETURNING getenv('HOME')
    UPDATE orders SET name = name IS DISTINCT FROM '{canary}'
    UPDATE orders SET id = 1 WHERE true; DETACH lake
    UPDATE other.main.orders SET id = 1
    DELETE FROM orders USING '{canary}'
    DELETE FROM orders USING read_text('{canary}') AS t WHERE true
    DELETE FROM orders WHERE name = getenv('HOME')
    DELETE FROM orders WHERE (SELECT true FROM '{canary}')
    DELETE FROM orders RETURNING getenv('HOME')
    DELETE FROM __ducklake_metadata_lake.ducklake_snapshot
    TRUNCATE memory.main.t
    TRUNCATE __ducklake_metadata_lake.ducklake_snapshot
    MERGE INTO orders USING '{canary}' AS s ON true WHEN MATCHED THEN DELETE
    MERGE INTO orders USING (SELECT * FROM read_text('{canary}')) s ON true WHEN MATCHED THEN DELETE
    MERGE INTO orders o USING orders s ON o.id = (SELECT 1 FROM '{canary}') WHEN MATCHED THEN DELETE
    MERGE INTO orders o USING orders s ON o.id = s.id WHEN MATCHED THEN UPDATE SET name = getenv('HOME')
    MERGE INTO orders o USING orders s ON o.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1, getenv('HOME'))
    MERGE INTO orders o USING orders s ON o.id = s.id WHEN MATCHED AND getenv('HOME') = '' THEN DELETE
    MERGE INTO orders o USING orders s ON o.id = s.id WHEN MATCHED THEN ERROR getenv('HOME')
    MERGE INTO memory.main.t USING orders s ON true WHEN MATCHED THEN DELETE
    COMMENT ON DATABASE lake IS 'x'
    COMMENT ON TABLE memory.main.t IS 'x'
    COMMENT ON TABLE orders IS getenv('HOME')
    COMMENT ON COLUMN other.t.a IS 'x'
    SELECT 1
    GRANT ALL ON orders TO root
    """.strip().splitlines()
    if line.strip()
)
