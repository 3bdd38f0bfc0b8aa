import type { JsonSchema } from './operation-docs.ts';

/** One field of an input or output, for people to read. */
interface SchemaField {
  /** The field's place: `text`, `users[].nick`. */
  readonly path: string;
  /** The type in words, such as "whole number, 1 to 1000". A named schema is its name in angle brackets. */
  readonly type: string;
  /** For an output: whether it always has the field. For an input: whether the field must be given. */
  readonly required: boolean;
  /** The default value, as JSON; null: none. */
  readonly defaultValue: string | null;
  readonly description: string;
}

/** The alternatives of an input or output: one object, or several. */
export function alternativesOf(schema: JsonSchema): readonly JsonSchema[] {
  return schema.oneOf ?? schema.anyOf ?? [schema];
}

/** The fields of an object. Each is followed by the fields of the objects in it. */
export function fieldsOf(schema: JsonSchema, prefix = ''): readonly SchemaField[] {
  const required = new Set(schema.required);
  return Object.entries(schema.properties ?? {}).flatMap(([key, property]) => {
    const path = `${prefix}${key}`;
    const field: SchemaField = {
      path,
      type: describeType(property),
      required: required.has(key),
      defaultValue: property.default === undefined ? null : JSON.stringify(property.default),
      description: property.description ?? '',
    };
    return [field, ...nestedFields(property, path)];
  });
}

/** The fields of the object, or of the objects in the list, at `path`. The alternative null has no fields. */
function nestedFields(schema: JsonSchema, path: string): readonly SchemaField[] {
  if (schema.properties !== undefined) return fieldsOf(schema, `${path}.`);
  if (schema.items !== undefined) return nestedFields(schema.items, `${path}[]`);
  return (schema.anyOf ?? schema.oneOf ?? []).flatMap((each) => nestedFields(each, path));
}

/** The type of a value in words. */
function describeType(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return `<${schema.$ref.split('/').at(-1)!}>`;
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) return alternatives.map(describeType).join(' or ');
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return `one of ${schema.enum.map((each) => `\`${String(each)}\``).join(', ')}`;
  const { type } = schema;
  if (typeof type === 'object') return type.map((each) => describeType({ ...schema, type: each })).join(' or ');
  switch (type) {
    case 'integer':
    case 'number':
      return `${type === 'integer' ? 'whole number' : 'number'}${describeRange(lowerBound(schema), upperBound(schema))}`;
    case 'string':
      return `text${describeTextConstraints(schema)}`;
    case 'boolean':
      return 'true or false';
    case 'null':
      return 'null';
    case 'array':
      return `list of ${describeType(schema.items ?? {})}${describeCountRange(schema.minItems, schema.maxItems, 'items')}`;
    case 'object':
      return describeObjectType(schema);
    default:
      return 'any value';
  }
}

function describeObjectType({ additionalProperties: values }: JsonSchema): string {
  return typeof values === 'object' ? `object of ${describeType(values)} by name` : 'object';
}

/** The lower bound of a number; the least safe integer of JavaScript counts as no bound. */
function lowerBound({ minimum, exclusiveMinimum }: JsonSchema): number | undefined {
  if (exclusiveMinimum !== undefined) return exclusiveMinimum + 1;
  return minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
}

function upperBound({ maximum }: JsonSchema): number | undefined {
  return maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
}

function describeRange(min: number | undefined, max: number | undefined): string {
  if (min === undefined) return max === undefined ? '' : `, at most ${max}`;
  return max === undefined ? `, ${min} or more` : `, ${min} to ${max}`;
}

function describeTextConstraints(schema: JsonSchema): string {
  const { minLength, maxLength, format, pattern } = schema;
  const length = describeCountRange(minLength, maxLength, 'characters');
  if (format !== undefined) return `, ${format}${length}`;
  return pattern === undefined ? length : `${length}, as \`${pattern}\``;
}

function describeCountRange(min: number | undefined, max: number | undefined, itemNoun: string): string {
  if (max === undefined) return min === undefined || min === 0 ? '' : `, at least ${min} ${itemNoun}`;
  return min === undefined || min === 0 ? `, at most ${max} ${itemNoun}` : `, ${min} to ${max} ${itemNoun}`;
}
