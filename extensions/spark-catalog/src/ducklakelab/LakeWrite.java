package ducklakelab;

import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** A mark that a write is of a lake. `WriteStrategy` plans it; it writes nothing by itself. */
final class LakeWrite implements DeltaWrite {
  private final Builder builder;

  private LakeWrite(Builder builder) {
    this.builder = builder;
  }

  @Override
  public DeltaBatchWrite toBatch() {
    throw new UnsupportedOperationException(
        "This SparkSession does not write lakes yet; call dl.spark_catalog with it first.");
  }

  @Override
  public StreamingWrite toStreaming() {
    return LakeStream.write(builder.table, builder.info, builder.truncates);
  }

  static final class Builder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
    private final LakeTable table;
    private final LogicalWriteInfo info;
    private boolean truncates;

    Builder(LakeTable table, LogicalWriteInfo info) {
      this.table = table;
      this.info = info;
    }

    @Override
    public boolean canOverwrite(Predicate[] predicates) {
      return true;
    }

    @Override
    public WriteBuilder overwrite(Predicate[] predicates) {
      return this;
    }

    @Override
    public WriteBuilder truncate() {
      truncates = true;
      return this;
    }

    @Override
    public WriteBuilder overwriteDynamicPartitions() {
      return this;
    }

    @Override
    public Write build() {
      return new LakeWrite(this);
    }
  }

  static final class DeltaBuilder implements DeltaWriteBuilder {
    @Override
    public DeltaWrite build() {
      return new LakeWrite(null);
    }
  }
}
