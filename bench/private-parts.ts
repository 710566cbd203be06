/** Members that begin with `_` of anything, methods of objects that are replaced, and what else its owner does not document; Ajv documents two paths below `dist`. */
const privateParts = [
  /\.(_(?!_)\w+)\b/g,
  /(?<!this)\.((?:push|write|read|flushSync) =)(?!=)/g,
  /\.(listeners\('\w+'\))/g,
  /\.(removeAllListeners\('\w+'\))/g,
  /\.(prototype\.(?!hasOwn|propertyIs)\w+\.call)\(/g,
  /(setFlagsFromString)\(/g,
  /'(internalMessage)'/g,
  /(process\.binding)/g,
  /from '((?!ajv\/dist\/2020|ajv\/dist\/types|\.|node:)(?:@[\w-]+\/)?[\w-]+\/(?:lib|src|dist)\/[^']*)'/g,
]

/** Private parts of Node and of packages, each `file part` once. */
export const findPrivateParts = (
  sources: readonly { readonly path: string; readonly text: string }[],
): readonly string[] => {
  const found = new Set<string>()
  for (const { path, text } of sources) {
    const code = text.replace(/^\s*(?:\/\*\*?|\*|\/\/).*$/gm, '')
    for (const form of privateParts) for (const [, part] of code.matchAll(form)) found.add(`${path} ${part}`)
  }
  return [...found].sort()
}
