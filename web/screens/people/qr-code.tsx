import { useMemo } from 'preact/hooks';
import type { Bitmap2D } from 'lean-qr/nano';
import { words } from '../../words/words.ts';
import { useLoaded } from '../loaded.ts';
import { Problem } from '../modal.tsx';

/** The width of the light margin around a QR code, in modules. Without it cameras do not find the code. */
const MARGIN_MODULES = 4;

const loadGenerate = async () => (await import('lean-qr/nano')).generate;

interface QrCodeProps {
  readonly text: string;
  readonly label: string;
}

/** A text as a QR code, dark on light in every theme. */
export function QrCode({ text, label }: QrCodeProps) {
  const { part: generate, hasFailed } = useLoaded(loadGenerate);
  const code = useMemo(() => generate?.(text) ?? null, [generate, text]);
  if (code === null) return hasFailed ? <Problem sentence={words.cannotLoad} /> : <p class="quiet">{words.loading}</p>;
  const side = code.size + 2 * MARGIN_MODULES;
  return (
    <svg
      class="qr-code"
      role="img"
      aria-label={label}
      viewBox={`${-MARGIN_MODULES} ${-MARGIN_MODULES} ${side} ${side}`}
      shape-rendering="crispEdges"
    >
      <rect x={-MARGIN_MODULES} y={-MARGIN_MODULES} width={side} height={side} fill="#fff" />
      <path d={svgPathOf(code)} fill="#000" />
    </svg>
  );
}

/** The SVG path of the dark modules, with one rectangle for each run of dark modules in a row. */
function svgPathOf(code: Bitmap2D): string {
  let svgPath = '';
  for (let y = 0; y < code.size; y += 1) {
    for (let x = 0; x < code.size; x += 1) {
      const runBegin = x;
      while (code.get(x, y)) x += 1;
      if (x > runBegin) svgPath += `M${runBegin} ${y}h${x - runBegin}v1h${runBegin - x}z`;
    }
  }
  return svgPath;
}
