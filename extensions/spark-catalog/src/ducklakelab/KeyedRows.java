package ducklakelab;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.Statistics$;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.BigInt;
import scala.runtime.AbstractPartialFunction;

/**
 * Rows of a table, of which each child has those of one value of a partition key.
 *
 * <p>It is no Union: the optimizer flattens those, drops empty children, and pushes joins below them.
 */
public final class KeyedRows extends LogicalPlan {
  /**
   * The columns, which are those of each child by position.
   *
   * @param numbers the number of the partition that each child is
   * @param bytes of the files
   */
  record Layout(Seq<AttributeReference> output, KeyPartitioning partitioning, List<Integer> numbers, long bytes)
      implements Serializable {}

  private final Seq<LogicalPlan> children;
  private final Layout layout;

  public KeyedRows(Seq<LogicalPlan> children, Layout layout) {
    this.children = children;
    this.layout = layout;
  }

  Layout layout() {
    return layout;
  }

  /** Returns the rows for which a condition is true, filtered where they are read. */
  KeyedRows where(Expression condition) {
    List<LogicalPlan> found = new ArrayList<>();
    for (LogicalPlan child : CollectionConverters.asJava(children)) {
      Map<ExprId, Attribute> columns = new java.util.HashMap<>();
      for (int i = 0; i < layout.output.size(); i++) {
        columns.put(layout.output.apply(i).exprId(), child.output().apply(i));
      }
      found.add(new Filter((Expression) condition.transform(new Renaming(columns)), child));
    }
    return new KeyedRows(CollectionConverters.asScala(found).toSeq(), layout);
  }

  @Override
  public Seq<LogicalPlan> children() {
    return children;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Seq<Attribute> output() {
    return (Seq<Attribute>) (Seq<?>) layout.output;
  }

  @Override
  public AttributeSet producedAttributes() {
    return outputSet();
  }

  @Override
  public AttributeSet references() {
    return inputSet(); // columns go by position: none of a child's may be left out
  }

  @Override
  public Statistics stats() {
    Statistics$ made = Statistics$.MODULE$;
    return made.apply(
        BigInt.apply(layout.bytes), made.apply$default$2(), made.apply$default$3(), made.apply$default$4());
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> replaced) {
    return new KeyedRows(replaced, layout);
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int place) {
    return place == 0 ? children : layout;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof KeyedRows;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof KeyedRows rows && rows.children.equals(children) && rows.layout.equals(layout);
  }

  @Override
  public int hashCode() {
    return children.hashCode() * 31 + layout.hashCode();
  }

  /** Replaces columns by those of a child. */
  private static final class Renaming extends AbstractPartialFunction<Expression, Expression> {
    private final Map<ExprId, Attribute> columns;

    Renaming(Map<ExprId, Attribute> columns) {
      this.columns = columns;
    }

    @Override
    public boolean isDefinedAt(Expression expression) {
      return expression instanceof Attribute column && columns.containsKey(column.exprId());
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends Expression, B> B applyOrElse(A expression, Function1<A, B> otherwise) {
      return isDefinedAt(expression)
          ? (B) columns.get(((Attribute) (Expression) expression).exprId())
          : otherwise.apply(expression);
    }
  }
}
