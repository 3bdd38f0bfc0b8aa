/** A position in a configuration text; line and column count from 1, columns in UTF-16 units. */
export interface Origin {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** An object; keys are a Map, so `__proto__` and `constructor` are keys like any other. */
export interface ObjectValue {
  readonly kind: 'object';
  readonly origin: Origin;
  readonly entries: Map<string, Value>;
}

/** An array; its items are in the order of the text. */
export interface ArrayValue {
  readonly kind: 'array';
  readonly origin: Origin;
  readonly items: Value[];
}

/** A string: quoted, unquoted or concatenated. */
export interface StringValue {
  readonly kind: 'string';
  readonly origin: Origin;
  readonly text: string;
}

/** A number. `text` has its spelling, since `1.10` may have been meant as a string. */
export interface NumberValue {
  readonly kind: 'number';
  readonly origin: Origin;
  readonly text: string;
  readonly number: number;
}

/** `true` or `false`; other spellings such as `yes` are strings here. */
export interface BooleanValue {
  readonly kind: 'boolean';
  readonly origin: Origin;
  readonly value: boolean;
}

/** An explicit `null`, which overrides an earlier value. */
export interface NullValue {
  readonly kind: 'null';
  readonly origin: Origin;
}

/** A resolved value. Its origin is the place that an administrator has to edit to change it. */
export type Value = ObjectValue | ArrayValue | StringValue | NumberValue | BooleanValue | NullValue;
