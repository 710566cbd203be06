/** Weights of content codings as a client states them (RFC 9110 §12.5.3). */
export type AcceptedCodings = {
  /** 0 = refused; undefined = not named, neither itself nor by `*`. */
  weightOf(coding: string): number | undefined
}

/** More members than any client sends; the rest is not read. */
const mostMembers = 32

/** A weight is the only parameter that a coding has; the rest is not read. */
const mostParameters = 4

/** RFC 9110 §12.4.2: at most three digits after the point. An invalid weight counts as absent. */
const weightPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/** RFC 9110 §8.4.1.1 and §8.4.1.3: old names of the same coding. */
const sameAs: Readonly<Record<string, string>> = { 'x-gzip': 'gzip', 'x-compress': 'compress' }

const weightIn = (parameters: readonly string[]): number => {
  for (const parameter of parameters) {
    const [name = '', value = ''] = parameter.split('=', 2)
    if (name.trim().toLowerCase() !== 'q') continue
    const text = value.trim()
    return weightPattern.test(text) ? Number(text) : 1
  }
  return 1
}

/** Reads any text without failing; a coding that is named twice keeps its first weight. */
const weightsIn = (value: string): ReadonlyMap<string, number> => {
  const weights = new Map<string, number>()
  for (const member of value.split(',', mostMembers)) {
    const [name = '', ...parameters] = member.split(';', 1 + mostParameters)
    const written = name.trim().toLowerCase()
    const coding = Object.hasOwn(sameAs, written) ? (sameAs[written] as string) : written
    if (coding !== '' && !weights.has(coding)) weights.set(coding, weightIn(parameters))
  }
  return weights
}

export const parseAcceptEncoding = (value: string): AcceptedCodings => {
  const weights = weightsIn(value)
  const others = weights.get('*')
  return {
    weightOf: (coding) => weights.get(coding) ?? others,
  }
}

/** The meaning of an Accept-Encoding field. */
export type AcceptedForms<Coding extends string> = {
  /** Codings that the client prefers to the uncoded form, best first. */
  readonly codings: readonly Coding[]
  readonly uncoded: boolean
}

/** With equal weights, the first of `offered` is best. */
export const acceptedForms = <Coding extends string>(
  value: string,
  offered: readonly Coding[],
): AcceptedForms<Coding> => {
  const accepted = parseAcceptEncoding(value)
  const weightOf = (coding: Coding): number => accepted.weightOf(coding) ?? 0
  // If identity is not listed, it is acceptable but not preferred (RFC 9110 §12.5.3).
  const uncoded = accepted.weightOf('identity')
  const codings = offered
    .filter((coding) => weightOf(coding) > 0 && weightOf(coding) >= (uncoded ?? 0))
    .sort((a, b) => weightOf(b) - weightOf(a))
  return { codings, uncoded: uncoded !== 0 }
}

/** Every coding that an upstream may be asked for (IANA HTTP Content Coding Registry), without those that need a dictionary. */
const askable: ReadonlySet<string> = new Set(['br', 'gzip', 'deflate', 'zstd', 'compress', 'identity', '*'])

const memberText = ([coding, weight]: [string, number]): string =>
  weight === 1 ? coding : `${coding};q=${weight}`

/** A client's Accept-Encoding as it is forwarded: known codings, each once. Without any, `identity`: the client can decode none. */
export const forwardedCodings = (value: string): string => {
  const known = [...weightsIn(value)].filter(([coding]) => askable.has(coding))
  return known.length === 0 ? 'identity' : known.map(memberText).join(', ')
}
