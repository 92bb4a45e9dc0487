/*
 * Predicts each sample of a stream, then learns it.
 *
 *     stream MODEL [RESULT] < samples.csv
 *
 * A line holds the values of the features and then the label or number, with commas between them and no header. An
 * empty value is missing. A line without a target is predicted, but not learned. The prediction of each line goes to
 * the output. In the end the forest is saved to RESULT, if that is given. The labels must be those of the model.
 */
#include <math.h>
#include <onlineforest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_LINE = 1 << 16 };

static void fail(const char* what) {
  fprintf(stderr, "stream: %s\n", what);
  exit(1);
}

static void check(of_status status) {
  if (status != OF_OK) fail(of_last_error());
}

/* Ends the field that *rest begins with, and returns it. Moves *rest to the next one, or to NULL. */
static char* next_field(char** rest) {
  char *field = *rest, *comma;
  if (field == NULL) fail("a line has too few fields");
  comma = strchr(field, ',');
  *rest = comma == NULL ? NULL : comma + 1;
  if (comma != NULL) *comma = '\0';
  return field;
}

static double number_of(const char* field) {
  char* end;
  double number = strtod(field, &end);
  if (end == field || *end != '\0') fail("a field is not a number");
  return number;
}

static int32_t class_of(const of_forest* forest, const char* label) {
  size_t i;
  for (i = 0; i < of_n_classes(forest); ++i) {
    const char* known;
    check(of_class_label(forest, i, &known, NULL));
    if (strcmp(known, label) == 0) return (int32_t)i;
  }
  fail("a label is not one of the model");
  return -1;
}

static void predict(of_forest* forest, const float* row, size_t n_features) {
  if (of_get_kind(forest) == OF_REGRESSOR) {
    double number;
    check(of_predict_numbers(forest, row, 1, n_features, 1, &number, 1));
    printf("%.17g\n", number);
  } else {
    int32_t index;
    const char* label;
    check(of_predict_classes(forest, row, 1, n_features, 1, &index, 1));
    check(of_class_label(forest, (size_t)index, &label, NULL));
    printf("%s\n", label);
  }
}

static void learn(of_forest* forest, const float* row, size_t n_features, const char* target) {
  if (of_get_kind(forest) == OF_REGRESSOR) {
    double number = number_of(target);
    check(of_learn_numbers(forest, row, 1, n_features, &number, NULL, 1));
  } else {
    int32_t index = class_of(forest, target);
    check(of_learn_classes(forest, row, 1, n_features, &index, NULL, 1));
  }
}

int main(int argc, char** argv) {
  static char line[LONGEST_LINE];
  of_forest* forest;
  size_t n_features, i;
  float* row;

  if (argc < 2 || argc > 3) fail("usage: stream MODEL [RESULT] < samples.csv");
  if (of_api_version() != OF_API_VERSION) fail("the library has another API version than this program");
  check(of_load(argv[1], 0, &forest));
  n_features = of_n_features(forest);
  row = malloc(n_features * sizeof *row);
  if (row == NULL) fail("there is not enough memory");
  while (fgets(line, sizeof line, stdin) != NULL) {
    char* rest = line;
    size_t length = strcspn(line, "\r\n");
    if (line[length] == '\0' && !feof(stdin)) fail("a line is too long");
    line[length] = '\0';
    for (i = 0; i < n_features; ++i) {
      const char* field = next_field(&rest);
      row[i] = *field == '\0' ? NAN : (float)number_of(field);
    }
    predict(forest, row, n_features);
    if (rest != NULL) learn(forest, row, n_features, rest);
  }
  if (argc == 3) check(of_save(forest, argv[2]));
  free(row);
  of_free(forest);
  return 0;
}
