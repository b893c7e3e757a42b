package ducklakelab;

import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution;
import org.apache.spark.sql.catalyst.plans.physical.Distribution;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.ShuffleSpec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Rows of a lake by the bucket of a column, one partition for each bucket. It is an expression, so that projections rename
 * its column. Spark never makes other rows fit it, since the lake's hash is not Spark's.
 */
final class Buckets extends Expression implements Partitioning {
  private final Expression key;
  private final int count;
  private final String form;

  Buckets(Expression key, int count, String form) {
    this.key = key;
    this.count = count;
    this.form = form;
  }

  @Override
  public int numPartitions() {
    return count;
  }

  @Override
  public boolean satisfies0(Distribution required) {
    if (Partitioning.super.satisfies0(required)) {
      return true;
    }
    if (!(required instanceof ClusteredDistribution clustered)) {
      return false;
    }
    // rows that are equal in all columns are equal in this one
    return !places(clustered).isEmpty() && (!clustered.requireAllClusterKeys() || clustered.clustering().size() == 1);
  }

  private List<Integer> places(ClusteredDistribution clustered) {
    List<Expression> columns = CollectionConverters.asJava(clustered.clustering());
    return java.util.stream.IntStream.range(0, columns.size())
        .filter(place -> columns.get(place).semanticEquals(key))
        .boxed()
        .toList();
  }

  @Override
  public ShuffleSpec createShuffleSpec(ClusteredDistribution required) {
    return new Spec(count, form, key.dataType(), places(required));
  }

  /** Two tables fit each other if they have buckets of one hash, as many, and of columns that the join compares. */
  private record Spec(int numPartitions, String form, DataType type, List<Integer> places) implements ShuffleSpec {
    @Override
    public boolean isCompatibleWith(ShuffleSpec other) {
      return other instanceof Spec spec
          && spec.numPartitions == numPartitions
          && spec.form.equals(form)
          && spec.type.equals(type)
          && spec.places.stream().anyMatch(places::contains);
    }

    @Override
    public boolean canCreatePartitioning() {
      return false;
    }
  }

  @Override
  public boolean nullable() {
    return false;
  }

  @Override
  public DataType dataType() {
    return DataTypes.IntegerType;
  }

  @Override
  public Seq<Expression> children() {
    return CollectionConverters.asScala(List.of(key)).toSeq();
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new Buckets(children.apply(0), count, form);
  }

  @Override
  public Object eval(InternalRow row) {
    throw new UnsupportedOperationException("Buckets are no value.");
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    throw new UnsupportedOperationException("Buckets are no value.");
  }

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int place) {
    return place == 0 ? key : place == 1 ? (Object) count : form;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Buckets;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Buckets of && of.key.equals(key) && of.count == count && of.form.equals(form);
  }

  @Override
  public int hashCode() {
    return Objects.hash(key, count, form);
  }
}
