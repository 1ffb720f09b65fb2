// Moves a tree by basic-ftp.
//
// usage: node tree.cjs HOST PORT USER PASSWORD upload|download DIR

const { Client } = require("basic-ftp");

async function main([host, port, user, password, verb, folder]) {
    const client = new Client(20000);
    try {
        await client.access({ host, port: Number(port), user, password });
        await (verb === "upload" ? client.uploadFromDir(folder) : client.downloadToDir(folder));
    } finally {
        client.close();
    }
}

main(process.argv.slice(2)).catch((why) => {
    console.error(why);
    process.exitCode = 1;
});
