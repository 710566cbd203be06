import { setFlagsFromString } from 'node:v8'

/**
 * Keeps V8 from deciding, by what lived long while it looked, that objects made in some place are made old. What a gateway makes for a
 * request lives as long as the request: under slow ones, such as uploads, V8 takes them for lasting, and from then on each
 * request leaves old garbage that holds young garbage. Collections of the young then take six times as long, for as long as the
 * process runs (docs/decisions/0015). To be called before anything is served.
 */
export const keepObjectsYoung = (): void => {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
