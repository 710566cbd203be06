import { type Logger, pino } from 'pino'

export type LoggerOptions = {
  readonly level: string
  readonly format: 'json' | 'pretty'
}

/** Of an error only what says where it was made: libraries hang the octets that they stumbled over on theirs. */
const plainError = (error: Error): Record<string, unknown> => {
  const { type, message, stack, code } = pino.stdSerializers.err(error)
  return { type, message, code, stack }
}

/**
 * The process's logger. Nothing that a client sends is ever handed to it: no URL, no field, no content;
 * what tells requests apart is their id. Redaction is a second line of defence for what errors may carry.
 */
export const createLogger = ({ level, format }: LoggerOptions): Logger =>
  pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: plainError },
    redact: {
      paths: ['*.authorization', '*.cookie', '*.password', '*.token', '*.headers', 'err.opts', 'err.config'],
      censor: '[redacted]',
    },
    ...(format === 'pretty' ? { transport: { target: 'pino-pretty' } } : {}),
  })
