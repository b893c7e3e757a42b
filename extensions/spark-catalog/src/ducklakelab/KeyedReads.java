package ducklakelab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Chooses reads of tables that are joined by a partition key, so that the join needs no shuffle. */
final class KeyedReads {
  /** Most partitions of a read: each has a plan of its own. */
  private static final int MOST = 256;

  /** The setting of the fewest bytes of a partition, on average, for which its plan costs less than a shuffle. */
  private static final String LEAST = "spark.ducklake.joinPartitionBytes";

  private static final long LEAST_BYTES = 16L << 20;

  /** A partition key that a read has as a column. */
  private record Key(LakeScan scan, Attribute column, ObjectNode described) {
    boolean isLike(Key other) {
      return described.get("transform").equals(other.described.get("transform"))
          && described.path("buckets").equals(other.described.path("buckets"))
          && column.dataType().equals(other.column.dataType());
    }
  }

  /**
   * A read by the values of a key.
   *
   * @param values of all joined reads, in one order; NULL is null
   * @param own those that this table has
   * @param bytes of its files
   */
  record Keyed(ObjectNode key, List<String> values, Set<String> own, long bytes) {}

  private KeyedReads() {}

  /** Returns the reads by the ids of their key columns. */
  static Map<ExprId, Keyed> chosen(LogicalPlan plan) {
    Map<ExprId, Key> keys = new HashMap<>();
    each(plan, node -> keysOf(node).forEach(key -> keys.put(key.column.exprId(), key)));
    if (keys.size() < 2 || !SQLConf.get().v2BucketingEnabled()) {
      return Map.of();
    }
    List<Set<ExprId>> groups = new ArrayList<>();
    Set<LakeScan> used = Collections.newSetFromMap(new IdentityHashMap<>());
    each(plan, node -> joined(node, keys, groups, used));
    Map<ExprId, Keyed> found = new HashMap<>();
    groups.forEach(group -> found.putAll(asked(group, keys)));
    return found;
  }

  private static void each(LogicalPlan plan, Consumer<LogicalPlan> visit) {
    visit.accept(plan);
    CollectionConverters.asJava(plan.children()).forEach(child -> each(child, visit));
  }

  private static List<Key> keysOf(LogicalPlan plan) {
    List<Key> found = new ArrayList<>();
    if (plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof LakeScan scan
        && scan.table().isPlain()
        && scan.aggregates() == null) {
      for (JsonNode key : scan.table().about.get("partitioning")) {
        for (Attribute column : CollectionConverters.asJava(relation.output())) {
          if (column.name().equals(key.get("column").asText())) {
            found.add(new Key(scan, column, (ObjectNode) key));
          }
        }
      }
    }
    return found;
  }

  /** Adds the keys by which a join compares two reads to their groups. A read takes part by one key. */
  @SuppressWarnings("unchecked")
  private static void joined(LogicalPlan plan, Map<ExprId, Key> keys, List<Set<ExprId>> groups, Set<LakeScan> used) {
    if (!(plan instanceof Join join)) {
      return;
    }
    Option<?> extracted = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    if (extracted.isEmpty()) {
      return;
    }
    Product parts = (Product) extracted.get();
    List<Object> left = CollectionConverters.asJava((Seq<Object>) parts.productElement(1));
    List<Object> right = CollectionConverters.asJava((Seq<Object>) parts.productElement(2));
    boolean all = SQLConf.get().getConfString("spark.sql.requireAllClusterKeysForCoPartition", "true").equals("true");
    for (int i = 0; i < (all && left.size() > 1 ? 0 : left.size()); i++) { // Spark would shuffle by all keys
      Key one = left.get(i) instanceof Attribute column ? keys.get(column.exprId()) : null;
      Key other = right.get(i) instanceof Attribute column ? keys.get(column.exprId()) : null;
      if (one == null || other == null || !one.isLike(other)) {
        continue;
      }
      Set<ExprId> group = new LinkedHashSet<>();
      for (Key key : List.of(one, other)) {
        ExprId id = key.column.exprId();
        groups.stream().filter(known -> known.contains(id)).findFirst().ifPresent(group::addAll);
        if (!group.contains(id) && !used.contains(key.scan)) {
          group.add(id);
        }
      }
      if (group.size() < 2) {
        continue;
      }
      groups.removeIf(known -> group.containsAll(known));
      groups.add(group);
      group.forEach(id -> used.add(keys.get(id).scan));
    }
  }

  /** Asks for the values of the keys of a group. A table that Spark broadcasts stays as it is. */
  private static Map<ExprId, Keyed> asked(Set<ExprId> group, Map<ExprId, Key> keys) {
    Map<ExprId, Set<String>> own = new HashMap<>();
    Map<ExprId, Long> bytes = new HashMap<>();
    for (ExprId id : group) {
      Key key = keys.get(id);
      JsonNode answer = key.scan.table().bridge.ask("keys", key.scan.request().set("key", key.described));
      if (answer.isNull() || answer.get("bytes").asLong() <= SQLConf.get().autoBroadcastJoinThreshold()) {
        continue;
      }
      bytes.put(id, answer.get("bytes").asLong());
      Set<String> values = new LinkedHashSet<>();
      answer.get("values").forEach(value -> values.add(value.textValue()));
      own.put(id, values);
    }
    Set<String> all = new LinkedHashSet<>();
    own.values().forEach(all::addAll);
    Map<ExprId, Keyed> found = new HashMap<>();
    long least = Long.parseLong(SQLConf.get().getConfString(LEAST, String.valueOf(LEAST_BYTES)));
    bytes.values().removeIf(some -> some < least * all.size());
    own.keySet().retainAll(bytes.keySet());
    if (own.size() > 1 && all.size() > 1 && all.size() <= MOST) {
      List<String> values = new ArrayList<>(all);
      own.forEach((id, some) -> found.put(id, new Keyed(keys.get(id).described, values, some, bytes.get(id))));
    }
    return found;
  }

  /** Returns a list of texts as JSON, with null for NULL. */
  static ArrayNode texts(Iterable<String> values) {
    ArrayNode found = Bridge.array();
    values.forEach(found::add);
    return found;
  }
}
