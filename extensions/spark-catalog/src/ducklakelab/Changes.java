package ducklakelab;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;

/** Changes of a table as JSON. */
final class Changes {
  private Changes() {}

  static ObjectNode column(String name, DataType type, boolean nullable, String comment) {
    return Bridge.object()
        .put("name", name)
        .put("type", type.json())
        .put("nullable", nullable)
        .put("comment", comment);
  }

  static ObjectNode describe(TableChange change) {
    ObjectNode found = Bridge.object().put("kind", change.getClass().getSimpleName());
    if (change instanceof TableChange.ColumnChange of) {
      found.set("path", Bridge.texts(of.fieldNames()));
    }
    if (change instanceof TableChange.SetProperty set) {
      return found.put("key", set.property()).put("value", set.value());
    }
    if (change instanceof TableChange.RemoveProperty remove) {
      return found.put("key", remove.property());
    }
    if (change instanceof TableChange.AddColumn add) {
      return found
          .put("type", add.dataType().json())
          .put("nullable", add.isNullable())
          .put("comment", add.comment())
          .put("position", add.position() == null ? null : add.position().toString())
          .put("default", add.defaultValue() == null ? null : add.defaultValue().getSql());
    }
    if (change instanceof TableChange.RenameColumn rename) {
      return found.put("new_name", rename.newName());
    }
    if (change instanceof TableChange.UpdateColumnType type) {
      return found.put("type", type.newDataType().json());
    }
    if (change instanceof TableChange.UpdateColumnNullability nullability) {
      return found.put("nullable", nullability.nullable());
    }
    if (change instanceof TableChange.UpdateColumnComment comment) {
      return found.put("comment", comment.newComment());
    }
    if (change instanceof TableChange.UpdateColumnDefaultValue value) {
      return found.put("default", value.newDefaultValue());
    }
    if (change instanceof TableChange.DeleteColumn delete) {
      return found.put("if_exists", delete.ifExists());
    }
    return found;
  }
}
