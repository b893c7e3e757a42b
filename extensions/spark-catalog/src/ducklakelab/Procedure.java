package ducklakelab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A function of a lake that CALL runs. Its parameters have the types of the arguments. */
record Procedure(Bridge bridge, Identifier identifier) implements UnboundProcedure {
  @Override
  public String name() {
    return identifier.name();
  }

  @Override
  public BoundProcedure bind(StructType given) {
    bridge.ask("load procedure", Bridge.named(identifier)); // Spark hides the errors of its catalog's loadProcedure
    return new Bound(this, given);
  }

  private record Bound(Procedure procedure, StructType given) implements BoundProcedure {
    @Override
    public String name() {
      return procedure.name();
    }

    @Override
    public ProcedureParameter[] parameters() {
      List<ProcedureParameter> found = new ArrayList<>();
      for (StructField field : given.fields()) {
        found.add(ProcedureParameter.in(field.name(), field.dataType()).build());
      }
      return found.toArray(new ProcedureParameter[0]);
    }

    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public Iterator<Scan> call(InternalRow input) {
      ObjectNode request = Bridge.named(procedure.identifier);
      ArrayNode arguments = request.putArray("arguments");
      for (int i = 0; i < given.fields().length; i++) {
        StructField field = given.fields()[i];
        Object value = input.get(i, field.dataType());
        arguments
            .addObject()
            .put("name", field.metadata().contains(ProcedureParameter.BY_NAME_METADATA_KEY) ? field.name() : null)
            .put("type", field.dataType().json())
            .set("value", describe(value, field.dataType()));
      }
      Dataset<Row> rows = procedure.bridge.rows("call", request);
      var execution = ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution();
      InternalRow[] found = execution.executedPlan().executeCollect();
      return List.<Scan>of(new Answer(rows.schema(), found)).iterator();
    }
  }

  private static JsonNode describe(Object value, DataType type) {
    if (value instanceof ArrayData array && type instanceof ArrayType list) {
      List<JsonNode> parts = new ArrayList<>();
      for (Object part : array.toObjectArray(list.elementType())) {
        parts.add(describe(part, list.elementType()));
      }
      return Bridge.tree(parts);
    }
    return Bridge.tree(value == null ? null : value.toString());
  }

  private record Answer(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
