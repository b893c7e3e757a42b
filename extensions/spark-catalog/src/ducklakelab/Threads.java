package ducklakelab;

import py4j.GatewayServer;
import py4j.Py4JPythonClientPerThread;

/**
 * Lets Java call back into the thread of Python that waits for it, which may hold the session's turn.
 *
 * <p>Each thread of Python has a connection, and py4j calls back through it. PySpark replaces the client that knows
 * these connections when it starts its callback server; they are handed on here.
 */
final class Threads {
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

  static void keep() {
    if (server == null || !(server.getCallbackClient() instanceof Py4JPythonClientPerThread now) || now == first) {
      return;
    }
    var connection = first.getPerThreadConnection();
    if (connection != null && now.getPerThreadConnection() == null) {
      now.setPerThreadConnection(connection);
    }
  }
}
