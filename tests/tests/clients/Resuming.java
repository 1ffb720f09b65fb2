import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.*;
import javax.net.ssl.*;

/**
 * Uploads a folder, lists it, goes on with a download in the middle, and downloads the folder: every data connection
 * resumes the TLS session of the control connection, as JSSE does it.
 *
 * usage: Resuming HOST PORT USER PASSWORD VERSION CERTIFICATE FROM BACK
 *
 * JSSE keeps sessions by host and port, so data connections have to look as if they went to the control port.
 */
public class Resuming {
    static SSLSocketFactory factory;
    static String host, version;
    static int port;
    static SSLSocket control;
    static BufferedReader replies;

    public static void main(String[] args) throws Exception {
        host = args[0];
        port = Integer.parseInt(args[1]);
        version = args[4];
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null);
        try (InputStream file = Files.newInputStream(Path.of(args[5]))) {
            trusted.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        factory = context.getSocketFactory();

        Socket plain = new Socket(host, port);
        replies = reader(plain);
        expect(null, 220);
        plain.getOutputStream().write("AUTH TLS\r\n".getBytes());
        expect(null, 234);
        control = secured(plain);
        replies = reader(control);
        expect("USER " + args[2], 331);
        expect("PASS " + args[3], 230);
        expect("PBSZ 0", 200);
        expect("PROT P", 200);
        expect("TYPE I", 200);

        File[] files = new File(args[6]).listFiles();
        Set<String> names = new TreeSet<>();
        for (File file : files) {
            names.add(file.getName());
            store(file.getName(), Files.readAllBytes(file.toPath()));
        }
        String listing = new String(fetch("NLST", 0), StandardCharsets.UTF_8);
        if (!names.equals(new TreeSet<>(Arrays.asList(listing.split("\r\n"))))) throw new IOException(listing);
        for (String name : names) {
            byte[] whole = fetch("RETR " + name, 0);
            byte[] rest = fetch("RETR " + name, whole.length / 2);
            if (!Arrays.equals(rest, Arrays.copyOfRange(whole, whole.length / 2, whole.length))) throw new IOException(name);
            Files.write(Path.of(args[7], name), whole);
        }
        expect("QUIT", 221);
        System.out.println("done");
    }

    static SSLSocket secured(Socket plain) throws IOException {
        SSLSocket socket = (SSLSocket) factory.createSocket(plain, host, port, true);
        socket.setEnabledProtocols(new String[] {version});
        SSLParameters parameters = socket.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        socket.setSSLParameters(parameters);
        socket.setSoTimeout(20_000);
        return socket;
    }

    /** Sends the command, and gives back the data connection behind 150. */
    static SSLSocket data(String command, long from) throws IOException {
        String reply = expect("EPSV", 229);
        int number = Integer.parseInt(reply.substring(reply.indexOf("(|||") + 4, reply.indexOf("|)")));
        Socket plain = new Socket() {
            @Override
            public int getPort() {
                return port;
            }
        };
        plain.connect(new InetSocketAddress(host, number));
        if (from > 0) expect("REST " + from, 350);
        expect(command, 150);
        SSLSocket socket = secured(plain);
        socket.startHandshake();
        return socket;
    }

    static byte[] fetch(String command, long from) throws IOException {
        SSLSocket socket = data(command, from);
        byte[] bytes = socket.getInputStream().readAllBytes();
        socket.close();
        expect(null, 226);
        return bytes;
    }

    static void store(String name, byte[] bytes) throws IOException {
        SSLSocket socket = data("STOR " + name, 0);
        socket.getOutputStream().write(bytes);
        // The server's tickets come behind our close_notify.
        socket.shutdownOutput();
        socket.getInputStream().readAllBytes();
        socket.close();
        expect(null, 226);
    }

    static BufferedReader reader(Socket socket) throws IOException {
        return new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    }

    static String expect(String command, int code) throws IOException {
        if (command != null) control.getOutputStream().write((command + "\r\n").getBytes(StandardCharsets.UTF_8));
        String line = replies.readLine();
        if (line == null || !line.startsWith(code + " ")) throw new IOException(command + ": " + line);
        return line;
    }
}
