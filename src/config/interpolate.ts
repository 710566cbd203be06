/** `${NAME}`, `${NAME:-default}`, and `$${` which stands for a literal `${`. A default holds no closing brace. */
const reference = /\$\$\{|\$\{([^}:]*)(?::-([^}]*))?\}/g
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

export type Interpolation =
  | { readonly kind: 'text'; readonly text: string }
  /** The variable's name, never a value: the text ends up in a fault. */
  | { readonly kind: 'fault'; readonly message: string }

/** Replaces references to the environment in one scalar. What comes from there stays text: it cannot add structure. */
export const interpolate = (
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): Interpolation => {
  const faults: string[] = []
  const replaced = text.replaceAll(
    reference,
    (whole, name: string | undefined, fallback: string | undefined) => {
      if (name === undefined) return '${'
      if (!variableName.test(name)) {
        faults.push('expected a variable name of letters, digits and underscores between the braces')
        return whole
      }
      // As in a shell, `:-` also stands in for a variable that is set and empty.
      const value = env[name] === '' && fallback !== undefined ? undefined : env[name]
      if (value === undefined && fallback === undefined) {
        faults.push(
          `the environment variable ${name} is not set, and there is no default (\${${name}:-default})`,
        )
      }
      return value ?? fallback ?? ''
    },
  )
  const [first] = faults
  if (first !== undefined) return { kind: 'fault', message: first }
  return { kind: 'text', text: replaced }
}
