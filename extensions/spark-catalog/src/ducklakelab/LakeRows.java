package ducklakelab;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;

/** The receiver of the rows of a write: hands them to the session. */
final class LakeRows extends BaseRelation implements InsertableRelation {
  private final LakeTable table;
  private final ObjectNode request;
  private final LogicalPlan replaced;

  LakeRows(LakeTable table, ObjectNode request, LogicalPlan replaced) {
    this.table = table;
    this.request = request;
    this.replaced = replaced;
  }

  @Override
  public void insert(Dataset<Row> rows, boolean overwrite) {
    List<Dataset<Row>> frames = new ArrayList<>(List.of(rows));
    if (replaced != null) {
      SparkSession session = (SparkSession) rows.sparkSession();
      frames.add(org.apache.spark.sql.classic.Dataset.ofRows(session, replaced));
    }
    table.bridge.send("write", request, frames);
    SparkSession spark = (SparkSession) rows.sparkSession();
    if (!spark.sharedState().cacheManager().isEmpty() && !(table instanceof LakeTable.Staged)) {
      spark.catalog().refreshTable(table.about.get("path").asText());
    }
  }

  @Override
  public SQLContext sqlContext() {
    return null;
  }

  @Override
  public StructType schema() {
    return new StructType();
  }

  @Override
  public String toString() {
    return table.name();
  }
}
