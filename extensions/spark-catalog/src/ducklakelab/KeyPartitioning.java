package ducklakelab;

import java.io.Serializable;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.TransformExpression;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * One partition for each value of a partition key.
 *
 * @param column the column that the key is computed from
 * @param buckets of the key; null where the key is the column itself
 * @param values the keys of the partitions, as the catalog has them; NULL is null
 */
record KeyPartitioning(Attribute column, Integer buckets, List<String> values) implements Serializable {
  /** Returns the partitioning as Spark has it. */
  Partitioning forSpark() {
    List<InternalRow> rows = new ArrayList<>();
    values.forEach(value -> rows.add(new GenericInternalRow(new Object[] {value == null ? null : parsed(value)})));
    Seq<InternalRow> keys = CollectionConverters.asScala(rows).toSeq();
    try {
      Seq<Expression> expressions = CollectionConverters.asScala(List.of(expression())).toSeq();
      // Spark 4.2 renamed the class, and the keys are no longer there twice
      Object found = made("KeyedPartitioning", expressions, keys);
      return (Partitioning)
          (found != null ? found : made("KeyGroupedPartitioning", expressions, values.size(), keys, keys));
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Returns an instance of a class of Spark; null where it has none of that name. */
  private static Object made(String name, Object... arguments) throws ReflectiveOperationException {
    Class<?> companion;
    try {
      companion = Class.forName("org.apache.spark.sql.catalyst.plans.physical." + name + "$");
    } catch (ClassNotFoundException error) {
      return null;
    }
    Method method =
        Arrays.stream(companion.getMethods())
            .filter(one -> one.getName().equals("apply") && !Modifier.isStatic(one.getModifiers()))
            .filter(one -> takes(one, arguments))
            .findFirst()
            .orElseThrow(() -> new NoSuchMethodException(name));
    return method.invoke(companion.getField("MODULE$").get(null), arguments);
  }

  private static boolean takes(Method method, Object[] arguments) {
    Class<?>[] types = method.getParameterTypes();
    boolean alike = types.length == arguments.length;
    for (int i = 0; alike && i < types.length; i++) {
      alike = types[i].isInstance(arguments[i]) || (types[i] == int.class && arguments[i] instanceof Integer);
    }
    return alike;
  }

  private Expression expression() throws ReflectiveOperationException {
    if (buckets == null) {
      return column;
    }
    Seq<Expression> of = CollectionConverters.asScala(List.<Expression>of(column)).toSeq();
    Object[] arguments = {new Bucket(column.dataType()), of, Option.apply((Object) buckets), Option.empty()};
    // Spark 4.3 has a fourth argument
    Constructor<?> made = TransformExpression.class.getConstructors()[0];
    return (Expression) made.newInstance(Arrays.copyOf(arguments, made.getParameterCount()));
  }

  private Object parsed(String value) {
    if (buckets != null) {
      return Integer.valueOf(value);
    }
    Map<DataType, Function<String, Object>> parsers =
        Map.of(
            DataTypes.ByteType, Byte::valueOf,
            DataTypes.ShortType, Short::valueOf,
            DataTypes.IntegerType, Integer::valueOf,
            DataTypes.LongType, Long::valueOf,
            DataTypes.StringType, UTF8String::fromString,
            DataTypes.DateType, text -> (int) LocalDate.parse(text).toEpochDay());
    return parsers.get(column.dataType()).apply(value);
  }

  /** The function of a bucket of a lake; Spark compares it, and never calls it. */
  private record Bucket(DataType type) implements ScalarFunction<Integer> {
    @Override
    public DataType[] inputTypes() {
      return new DataType[] {type};
    }

    @Override
    public DataType resultType() {
      return DataTypes.IntegerType;
    }

    @Override
    public String name() {
      return "bucket";
    }

    @Override
    public String canonicalName() {
      return "ducklake.bucket(" + type.catalogString() + ")";
    }
  }
}
