package ducklakelab;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Plans rows of a table by a partition key, with the partitioning that they have. */
final class KeyedStrategy extends SparkStrategy {
  @Override
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    List<SparkPlan> found = new ArrayList<>();
    if (plan instanceof KeyedRows rows) {
      List<SparkPlan> parts = new ArrayList<>();
      CollectionConverters.asJava(rows.children()).forEach(part -> parts.add(planLater(part)));
      found.add(new KeyedExec(CollectionConverters.asScala(parts).toSeq(), rows.output(), rows.layout()));
    }
    return CollectionConverters.asScala(found).toSeq();
  }
}
