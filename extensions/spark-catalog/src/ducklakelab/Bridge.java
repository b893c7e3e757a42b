package ducklakelab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.jdk.javaapi.CollectionConverters;

/** Asks the session in Python. Requests and answers are JSON; rows are DataFrames. */
public final class Bridge {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, BiFunction<String, Object, Object>> SESSIONS = new ConcurrentHashMap<>();

  private static final Map<String, SparkSession> USERS = new ConcurrentHashMap<>();

  private final String key;

  Bridge(String key) {
    this.key = key;
  }

  /** Sets the function that answers for a catalog, and the session of Spark that has it. */
  public static void register(
      String key, BiFunction<String, Object, Object> answers, org.apache.spark.sql.SparkSession user) {
    SESSIONS.put(key, answers);
    USERS.put(key, (SparkSession) user);
  }

  SparkSession user() {
    return USERS.get(key);
  }

  /** Notes the server of Python's commands before PySpark starts its callback server. */
  public static void watch(Object server) {
    Threads.watch(server);
  }

  public static void forget(String key) {
    SESSIONS.remove(key);
    USERS.remove(key);
  }

  /** Adds the rule and the strategies to a running session, once. */
  public static void install(org.apache.spark.sql.SparkSession session) {
    SparkSession spark = (SparkSession) session;
    var methods = spark.experimental();
    var rules = new ArrayList<>(CollectionConverters.asJava(methods.extraOptimizations()));
    if (rules.stream().noneMatch(rule -> rule instanceof ReadRule)) {
      rules.add(new ReadRule());
      methods.extraOptimizations_$eq(CollectionConverters.asScala(rules).toSeq());
    }
    var strategies = new ArrayList<>(CollectionConverters.asJava(methods.extraStrategies()));
    if (strategies.stream().noneMatch(strategy -> strategy instanceof WriteStrategy)) {
      strategies.add(new WriteStrategy());
      strategies.add(new KeyedStrategy());
      methods.extraStrategies_$eq(CollectionConverters.asScala(strategies).toSeq());
    }
  }

  /** Returns rows whose reads of lakes are planned now, in the state of the open transaction. */
  public static Dataset<Row> planned(Dataset<Row> rows) {
    var found = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    LogicalPlan plan = WriteStrategy.planned(found.queryExecution().optimizedPlan());
    return org.apache.spark.sql.classic.Dataset.ofRows(found.sparkSession(), plan);
  }

  static ObjectNode object() {
    return JSON.createObjectNode();
  }

  static ArrayNode array() {
    return JSON.createArrayNode();
  }

  static ObjectNode named(Identifier name) {
    return object().put("name", name.name()).set("namespace", texts(name.namespace()));
  }

  static JsonNode texts(String... values) {
    return JSON.valueToTree(values);
  }

  static JsonNode tree(Object value) {
    return JSON.valueToTree(value);
  }

  /** Returns the answer to a request. */
  JsonNode ask(String operation, ObjectNode request) {
    Object answer = call(operation, request, null);
    return answer == null ? JSON.nullNode() : read((String) answer);
  }

  @SuppressWarnings("unchecked")
  Dataset<Row> rows(String operation, ObjectNode request) {
    return (Dataset<Row>) call(operation, request, null);
  }

  @SuppressWarnings("unchecked")
  List<Dataset<Row>> frames(String operation, ObjectNode request) {
    return (List<Dataset<Row>>) call(operation, request, null);
  }

  /** Sends a request with DataFrames. */
  void send(String operation, ObjectNode request, List<Dataset<Row>> frames) {
    call(operation, request, frames);
  }

  private Object call(String operation, ObjectNode request, List<Dataset<Row>> frames) {
    BiFunction<String, Object, Object> answers = SESSIONS.get(key);
    if (answers == null) {
      throw new IllegalArgumentException(
          "The session of this catalog is closed; call dl.spark_catalog again.");
    }
    Threads.describe(request);
    List<Object> argument = new ArrayList<>();
    argument.add(request.toString());
    if (frames != null) {
      argument.addAll(frames);
    }
    Object answer = answers.apply(operation, argument);
    if (answer instanceof String && ((String) answer).startsWith("{\"error\"")) {
      JsonNode error = read((String) answer).get("error");
      raise(error.get("kind").asText(), error.get("message").asText(), request);
    }
    return answer;
  }

  private static JsonNode read(String text) {
    try {
      return JSON.readTree(text);
    } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Raises an error of the session as the one that Spark expects for its kind. */
  private static void raise(String kind, String message, ObjectNode request) {
    switch (kind) {
      case "no table":
        throw Bridge.<RuntimeException>unchecked(new NoSuchTableException(identifier(request)));
      case "no namespace":
        throw Bridge.<RuntimeException>unchecked(new NoSuchNamespaceException(namespace(request)));
      case "table exists":
        throw Bridge.<RuntimeException>unchecked(new TableAlreadyExistsException(identifier(request)));
      case "namespace exists":
        throw Bridge.<RuntimeException>unchecked(new NamespaceAlreadyExistsException(namespace(request)));
      case "namespace not empty":
        throw Bridge.<RuntimeException>unchecked(new NonEmptyNamespaceException(namespace(request)));
      case "unsupported":
        throw new UnsupportedOperationException(message);
      default:
        throw new IllegalArgumentException(message);
    }
  }

  private static String[] namespace(ObjectNode request) {
    List<String> parts = new ArrayList<>();
    request.withArray("namespace").forEach(part -> parts.add(part.asText()));
    return parts.toArray(new String[0]);
  }

  private static Identifier identifier(ObjectNode request) {
    return Identifier.of(namespace(request), request.path("name").asText());
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> T unchecked(Throwable error) throws T {
    throw (T) error;
  }
}
