package ducklakelab;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.SparkContext;
import py4j.GatewayServer;
import py4j.Py4JPythonClientPerThread;

/**
 * Lets Java call back into the thread of Python that waits for it, which may hold the session's turn.
 *
 * <p>Each thread of Python has a connection, and py4j calls back through it. PySpark replaces the client that knows
 * these connections when it starts its callback server; they are handed on here.
 */
final class Threads {
  private static final String PROPERTY = "ducklakelab.thread";
  private static volatile GatewayServer server;
  private static volatile Py4JPythonClientPerThread first;

  private Threads() {}

  static void watch(Object given) {
    // without pinned threads, py4j calls back in threads of its own
    if (given instanceof GatewayServer found
        && found.getCallbackClient() instanceof Py4JPythonClientPerThread client) {
      server = found;
      first = client;
    }
  }

  /** Says in a request which thread of Python waits: this one's, or the one that this thread of Spark works for. */
  static void describe(ObjectNode request) {
    if (server == null || !(server.getCallbackClient() instanceof Py4JPythonClientPerThread now)) {
      return;
    }
    var connection = now.getPerThreadConnection();
    if (connection == null && now != first) {
      connection = first.getPerThreadConnection();
      if (connection != null) {
        now.setPerThreadConnection(connection);
      }
    }
    SparkContext context = SparkContext.getOrCreate();
    boolean waits = connection != null && !connection.isInitiatedFromClient();
    if (waits) {
      // Spark hands its properties on to threads that work for this one
      context.setLocalProperty(PROPERTY, Long.toString(Thread.currentThread().getId()));
    }
    request.put("thread", context.getLocalProperty(PROPERTY)).put("waits", waits);
  }
}
