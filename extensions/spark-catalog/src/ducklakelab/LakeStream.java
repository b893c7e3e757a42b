package ducklakelab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Streams of a table: those of the format `ducklake` in Python, whose workers read and write the files. */
final class LakeStream {
  private LakeStream() {}

  static MicroBatchStream read(LakeTable table, CaseInsensitiveStringMap options, String checkpoint) {
    CaseInsensitiveStringMap known = complete(table, options, "read");
    return asUser(table, format -> {
      Table source = format.getTable(table.schema(), new Transform[0], Map.of());
      return ((SupportsRead) source).newScanBuilder(known).build().toMicroBatchStream(checkpoint);
    });
  }

  static StreamingWrite write(LakeTable table, LogicalWriteInfo info, boolean truncate) {
    CaseInsensitiveStringMap known = complete(table, info.options(), "write");
    return asUser(table, format -> {
      Table source = format.getTable(info.schema(), new Transform[0], Map.of());
      WriteBuilder builder = ((SupportsWrite) source).newWriteBuilder(new Info(info, known));
      return (truncate ? ((SupportsTruncate) builder).truncate() : builder).build().toStreaming();
    });
  }

  /**
   * Works with the format in the user's session, which knows it; a query's own session may be older than that. Python's
   * formats are looked up again in the active session whenever they begin something.
   */
  private static <T> T asUser(LakeTable table, Function<TableProvider, T> work) {
    SparkSession active = SparkSession.active();
    SparkSession user = table.bridge.user();
    SparkSession.setActiveSession(user);
    try {
      return work.apply(DataSource.lookupDataSourceV2("ducklake", user.sessionState().conf()).get());
    } finally {
      SparkSession.setActiveSession(active);
    }
  }

  /** Returns the options of a query, and those that name the table. */
  private static CaseInsensitiveStringMap complete(LakeTable table, CaseInsensitiveStringMap options, String purpose) {
    ObjectNode request = Bridge.object().put("purpose", purpose);
    request.set("table", table.token());
    request.set("options", Bridge.tree(options.asCaseSensitiveMap()));
    JsonNode known = table.bridge.ask("stream", request);
    Map<String, String> all = new LinkedHashMap<>(options.asCaseSensitiveMap());
    all.putAll(LakeCatalog.texts(known));
    return new CaseInsensitiveStringMap(all);
  }

  private record Info(LogicalWriteInfo of, CaseInsensitiveStringMap options) implements LogicalWriteInfo {
    @Override
    public String queryId() {
      return of.queryId();
    }

    @Override
    public StructType schema() {
      return of.schema();
    }
  }
}
