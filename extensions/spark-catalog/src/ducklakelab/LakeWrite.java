package ducklakelab;

import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** A mark that a write is of a lake. `WriteStrategy` plans it; it writes nothing by itself. */
final class LakeWrite implements DeltaWrite {
  @Override
  public DeltaBatchWrite toBatch() {
    throw new UnsupportedOperationException(
        "This SparkSession does not write lakes yet; call dl.spark_catalog with it first.");
  }

  static final class Builder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
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
      return this;
    }

    @Override
    public WriteBuilder overwriteDynamicPartitions() {
      return this;
    }

    @Override
    public Write build() {
      return new LakeWrite();
    }
  }

  static final class DeltaBuilder implements DeltaWriteBuilder {
    @Override
    public DeltaWrite build() {
      return new LakeWrite();
    }
  }
}
