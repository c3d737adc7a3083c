"""spark-submit's entry point: runs planned pipelines."""

import sys

from tidegate.spark.driver import main

sys.exit(main())
