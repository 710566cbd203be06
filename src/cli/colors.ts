import { styleText } from 'node:util'
import type { TextOutput } from './cli-ports.ts'

const styles = {
  fault: ['bold', 'red'],
  warning: 'yellow',
  ok: 'green',
  place: 'dim',
  title: 'bold',
} as const

/** A text in colour, on a terminal that shows colours: NO_COLOR and the kind of terminal decide. */
export const colored = (
  output: Pick<TextOutput, 'hasColors'>,
  style: keyof typeof styles,
  text: string,
): string =>
  output.hasColors?.() === true ? styleText([styles[style]].flat(), text, { validateStream: false }) : text
