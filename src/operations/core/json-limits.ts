import { randomInt } from 'node:crypto';

/** Bounds of what a JSON text may hold, since each of these takes time to parse. */
export interface JsonLimits {
  /** Arrays and objects inside each other. V8 takes 200 ms for 500,000. */
  readonly maxDepth: number;
  /** Values, at any depth. */
  readonly maxValues: number;
  /**
   * Shapes of objects: a key is counted once for each sequence of keys before it in its object. V8 makes a hidden class
   * for each: 25,000 of them took 80 ms, while 25,000 objects of one shape took 1 ms.
   */
  readonly maxShapes: number;
}

/** More shapes than any limit allows; the table that counts them is never more than half full. */
const MAX_SHAPES = 4_096;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_OBJECT = 0x7b;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** Counts hashes that differ. One table serves all texts: an entry of an earlier text has another generation. */
class DistinctHashCounter {
  readonly #hashes = new Int32Array(2 * MAX_SHAPES);
  readonly #slotGenerations = new Uint32Array(2 * MAX_SHAPES);
  #textGeneration = 0;
  count = 0;

  clear(): void {
    this.#textGeneration += 1;
    this.count = 0;
  }

  add(hash: number): void {
    let slot = (hash >>> 1) & (this.#hashes.length - 1);
    while (this.#slotGenerations[slot] === this.#textGeneration) {
      if (this.#hashes[slot] === hash) return;
      slot = (slot + 1) & (this.#hashes.length - 1);
    }
    this.#hashes[slot] = hash;
    this.#slotGenerations[slot] = this.#textGeneration;
    this.count += 1;
  }
}

const shapesInText = new DistinctHashCounter();
/** Random, so that nobody can choose keys whose hashes are equal. */
const HASH_SEED = randomInt(0x7fffffff);

/**
 * The reason why a JSON text may not be parsed, as a sentence without a subject; null: it may. Costs one pass over the
 * text: 1 MiB takes about 2 ms.
 */
export function jsonLimitViolation(text: string, limits: JsonLimits): string | null {
  // A text holds at most as many of each as it has characters.
  if (text.length <= limits.maxDepth && text.length <= limits.maxValues && text.length <= limits.maxShapes) return null;
  const maxShapes = Math.min(limits.maxShapes, MAX_SHAPES - 1);
  /** By depth: the hash of the keys so far in the object there; 0 in an array. */
  const shapeAt = new Int32Array(limits.maxDepth + 2);
  let depth = 0;
  let values = 0;
  let isKeyNext = false;
  shapesInText.clear();
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      const end = endOfString(text, at + 1);
      if (isKeyNext) {
        isKeyNext = false;
        const shape = extendShapeHash(text, at + 1, end, shapeAt[depth]!);
        // Keys that are numbers are elements, which have no hidden class.
        if (shape !== 0) {
          shapeAt[depth] = shape;
          shapesInText.add(shape);
          if (shapesInText.count > maxShapes) return `holds more than ${maxShapes} different keys`;
        }
      }
      at = end;
    } else if (unit === COMMA) {
      values += 1;
      isKeyNext = shapeAt[depth] !== 0;
      if (values > limits.maxValues) return `holds more than ${limits.maxValues} values`;
      // [ and {, ] and } differ in one bit.
    } else if ((unit | 0x20) === OPEN_OBJECT) {
      depth += 1;
      values += 1;
      if (depth > limits.maxDepth) return `is nested deeper than ${limits.maxDepth} levels`;
      if (values > limits.maxValues) return `holds more than ${limits.maxValues} values`;
      isKeyNext = unit === OPEN_OBJECT;
      shapeAt[depth] = isKeyNext ? HASH_SEED | 1 : 0;
    } else if ((unit | 0x20) === 0x7d) {
      // A text with more ends than beginnings is no JSON; V8 says so without delay.
      depth = Math.max(0, depth - 1);
      isKeyNext = false;
    }
  }
  return null;
}

/** The position of the quote that ends a string; the end of the text where none does. */
function endOfString(text: string, begin: number): number {
  for (let at = begin; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at;
    if (unit === BACKSLASH) at += 1;
  }
  return text.length;
}

/** The hash of a shape with one more key, never 0; 0 for a key that is the number of an element. */
function extendShapeHash(text: string, begin: number, end: number, shape: number): number {
  let hash = shape;
  // "07" is a name and no number of an element.
  let isNumber = end > begin && (end === begin + 1 || text.charCodeAt(begin) !== DIGIT_0);
  for (let at = begin; at < end; at += 1) {
    const unit = text.charCodeAt(at);
    isNumber &&= unit >= DIGIT_0 && unit <= DIGIT_9;
    hash = Math.imul(hash ^ unit, 0x5bd1e995);
    hash ^= hash >>> 15;
  }
  return isNumber && end - begin < 10 ? 0 : hash | 1;
}
