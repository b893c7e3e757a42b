package ducklakelab;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.UnionRDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.Ordering;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Rows of a table, one partition for each value of a partition key. */
public final class KeyedExec extends SparkPlan {
  private static final ClassTag<InternalRow> ROW = ClassTag$.MODULE$.apply(InternalRow.class);

  private final Seq<SparkPlan> children;
  private final Seq<Attribute> output;
  private final KeyedRows.Layout layout;

  public KeyedExec(Seq<SparkPlan> children, Seq<Attribute> output, KeyedRows.Layout layout) {
    this.children = children;
    this.output = output;
    this.layout = layout;
  }

  @Override
  public Seq<SparkPlan> children() {
    return children;
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public Partitioning outputPartitioning() {
    return layout.partitioning().forSpark();
  }

  @Override
  public AttributeSet producedAttributes() {
    return outputSet();
  }

  @Override
  public RDD<InternalRow> doExecute() {
    RDD<InternalRow> none =
        sparkContext().parallelize(CollectionConverters.asScala(List.<InternalRow>of()).toSeq(), 1, ROW);
    List<RDD<InternalRow>> parts = new ArrayList<>(Collections.nCopies(layout.partitioning().values().size(), none));
    for (int i = 0; i < children.size(); i++) {
      RDD<InternalRow> rows = children.apply(i).execute();
      if (rows.getNumPartitions() > 1) {
        rows = rows.coalesce(1, false, Option.empty(), (Ordering<InternalRow>) null);
      }
      if (rows.getNumPartitions() == 1) {
        parts.set(layout.numbers().get(i), rows);
      }
    }
    return new UnionRDD<>(sparkContext(), CollectionConverters.asScala(parts).toSeq(), ROW);
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> replaced) {
    return new KeyedExec(replaced, output, layout);
  }

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int place) {
    return switch (place) {
      case 0 -> children;
      case 1 -> output;
      default -> layout;
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof KeyedExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof KeyedExec plan
        && plan.children.equals(children)
        && plan.output.equals(output)
        && plan.layout.equals(layout);
  }

  @Override
  public int hashCode() {
    return children.hashCode() * 31 + layout.hashCode();
  }

  @Override
  public String nodeName() {
    return "Partitions of a lake's table by " + layout.partitioning().column().name();
  }
}
