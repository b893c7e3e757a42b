package ducklakelab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A lake as a catalog of Spark; the session answers for all metadata. */
public final class LakeCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog {
  private String name;
  private Bridge bridge;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.bridge = new Bridge(options.getOrDefault("key", ""));
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String[] defaultNamespace() {
    return new String[] {"main"};
  }

  @Override
  public Set<TableCatalogCapability> capabilities() {
    return Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  // Namespaces

  @Override
  public String[][] listNamespaces() {
    return listNamespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] parent) {
    List<String[]> found = new ArrayList<>();
    bridge.ask("list namespaces", in(parent)).forEach(entry -> found.add(strings(entry)));
    return found.toArray(new String[0][]);
  }

  @Override
  public boolean namespaceExists(String[] namespace) {
    return bridge.ask("namespace exists", in(namespace)).asBoolean();
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return texts(bridge.ask("load namespace", in(namespace)));
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    ObjectNode request = in(namespace);
    request.set("properties", Bridge.tree(metadata));
    bridge.ask("create namespace", request);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw new UnsupportedOperationException("ALTER NAMESPACE: schemas of a lake have no properties.");
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return bridge.ask("drop namespace", in(namespace).put("cascade", cascade)).asBoolean();
  }

  // Tables

  @Override
  public Identifier[] listTables(String[] namespace) {
    List<Identifier> found = new ArrayList<>();
    bridge.ask("list tables", in(namespace)).forEach(entry -> found.add(Identifier.of(namespace, entry.asText())));
    return found.toArray(new Identifier[0]);
  }

  @Override
  public Table loadTable(Identifier table) {
    return new LakeTable(bridge, bridge.ask("load table", Bridge.named(table)));
  }

  @Override
  public Table loadTable(Identifier table, String version) {
    return new LakeTable(bridge, bridge.ask("load table", Bridge.named(table).put("version", version)));
  }

  @Override
  public Table loadTable(Identifier table, long micros) {
    return new LakeTable(bridge, bridge.ask("load table", Bridge.named(table).put("micros", micros)));
  }

  @Override
  public Table createTable(Identifier table, Column[] columns, Transform[] keys, Map<String, String> properties) {
    bridge.ask("create table", definition(table, columns, keys, properties));
    return loadTable(table);
  }

  @Override
  public Table alterTable(Identifier table, TableChange... changes) {
    ObjectNode request = Bridge.named(table);
    ArrayNode list = request.putArray("changes");
    for (TableChange change : changes) {
      list.add(Changes.describe(change));
    }
    bridge.ask("alter table", request);
    return loadTable(table);
  }

  @Override
  public boolean dropTable(Identifier table) {
    return bridge.ask("drop table", Bridge.named(table)).asBoolean();
  }

  @Override
  public boolean purgeTable(Identifier table) {
    throw new UnsupportedOperationException(
        "DROP TABLE … PURGE: files of a dropped table stay for time travel; use DROP TABLE, then CALL "
            + name + ".expire_snapshots and cleanup_old_files.");
  }

  @Override
  public void renameTable(Identifier old, Identifier table) {
    ObjectNode request = Bridge.named(old);
    request.put("new_name", table.name());
    request.set("new_namespace", Bridge.texts(table.namespace()));
    bridge.ask("rename table", request);
  }

  // Tables with rows, in one snapshot

  @Override
  public StagedTable stageCreate(Identifier table, Column[] columns, Transform[] keys, Map<String, String> properties) {
    return staged("create", definition(table, columns, keys, properties));
  }

  @Override
  public StagedTable stageReplace(
      Identifier table, Column[] columns, Transform[] keys, Map<String, String> properties) {
    return staged("replace", definition(table, columns, keys, properties));
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier table, Column[] columns, Transform[] keys, Map<String, String> properties) {
    return staged("create or replace", definition(table, columns, keys, properties));
  }

  private StagedTable staged(String mode, ObjectNode request) {
    return new LakeTable.Staged(bridge, bridge.ask("stage table", request.put("mode", mode)));
  }

  private static ObjectNode definition(
      Identifier table, Column[] columns, Transform[] keys, Map<String, String> properties) {
    ObjectNode request = Bridge.named(table);
    ArrayNode list = request.putArray("columns");
    for (Column column : columns) {
      if (column.generationExpression() != null || column.identityColumnSpec() != null) {
        throw new UnsupportedOperationException(
            "Column " + column.name() + ": generated and identity columns are not supported in a lake.");
      }
      list.add(Changes.column(column.name(), column.dataType(), column.nullable(), column.comment())
          .put("default", column.defaultValue() == null ? null : column.defaultValue().getSql()));
    }
    ArrayNode partitioning = request.putArray("partitioning");
    for (Transform key : keys) {
      ObjectNode entry = partitioning.addObject().put("transform", key.name());
      ArrayNode arguments = entry.putArray("arguments");
      for (var argument : key.arguments()) {
        if (argument instanceof Literal<?> literal) {
          arguments.add(Bridge.tree(literal.value()));
        } else if (argument instanceof NamedReference reference) {
          arguments.add(Bridge.texts(reference.fieldNames()));
        } else {
          arguments.add(argument.describe());
        }
      }
    }
    request.set("properties", Bridge.tree(properties));
    return request;
  }

  // Procedures

  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    return new Procedure(bridge, procedure);
  }

  // an override from Spark 4.1 on
  public Identifier[] listProcedures(String[] namespace) {
    List<Identifier> found = new ArrayList<>();
    bridge.ask("list procedures", in(namespace)).forEach(entry -> found.add(Identifier.of(namespace, entry.asText())));
    return found.toArray(new Identifier[0]);
  }

  private static ObjectNode in(String[] namespace) {
    return Bridge.object().set("namespace", Bridge.texts(namespace));
  }

  private static String[] strings(JsonNode entry) {
    List<String> found = new ArrayList<>();
    entry.forEach(part -> found.add(part.asText()));
    return found.toArray(new String[0]);
  }

  static Map<String, String> texts(JsonNode entry) {
    Map<String, String> found = new LinkedHashMap<>();
    entry.fields().forEachRemaining(field -> found.put(field.getKey(), field.getValue().asText()));
    return found;
  }
}
