"""Fine-tunes a language model on what `stair train-data` wrote, see `python -m stair_train -h`."""
